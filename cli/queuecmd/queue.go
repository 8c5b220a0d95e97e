package queuecmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"fspda/cli/command"
	"fspda/train"
)

// flags are the flags of queue.
type flags struct {
	cores       int
	maxLoad     float64
	nice        int
	list, retry bool
}

const queueLong = `Run commands that take long, one after the other by priority, on idle cores. The file lists them:

  folder: runs/evidence                # the default is runs/queue-FILE
  tasks:
    - {name: figure-5, priority: 2, command: figure 5 --scale 0.001 --retune --seeds 3 --data-dir DIR}
    - {name: grid, command: sweep -c grid.yaml, cores: 2}
    - {name: long, command: [train, --edges, bernoulli(0.5), --iterations, 100000]}

A command is one of figure, sweep, tune, theory, replay, train, without --out, --threads and --resume,
which the queue sets. Each runs in a process of its own, at low priority (nice). A task starts when a core of --cores
is free and the load of the machine would not exceed --max-load. Higher priorities run first. The file is read again
before each start, so that tasks can be added while the queue runs. A task with a flag that does not exist, or a file
of -c that no task writes, is refused before the first one starts. A task that asks for more cores than the queue has
runs alone, on those.

The folder holds a folder for each task, NAME.log with its output, NAME.json with its status and time, and queue.md, a
table of all tasks that is current while they run. When the same command runs again, also after kill -9 or a restart of
the machine, finished tasks are kept and unfinished ones continue from their checkpoints, with the same bits.`

func newQueue(root func() *cobra.Command) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "queue FILE.yaml",
		Short: "Run a queue of figures, searches and runs on idle cores; it survives restarts",
		Long:  queueLong,
		Example: `  fspda queue evidence.yaml --cores 2
  fspda queue evidence.yaml --list`,
		Args: command.Arguments(1, 1, "the file that lists the commands; --help shows one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.cores < 0:
				return command.UsageErrorf("--cores is %d, expected at least 1, or 0 for all", f.cores)
			case !(f.maxLoad >= 0):
				return command.UsageErrorf("--max-load is %g, expected a load above 0, or 0 for none", f.maxLoad)
			case f.nice < 0 || f.nice > 19:
				return command.UsageErrorf("--nice is %d, expected 0 to 19", f.nice)
			}
			if f.list {
				if err := command.OnlyFlags(cmd.Flags(), "queue --list, which runs nothing", "list"); err != nil {
					return err
				}
			}
			return run(cmd, root, args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.cores, "cores", 0, "cores that the tasks use together; 0 is all")
	fs.Float64Var(&f.maxLoad, "max-load", float64(runtime.NumCPU()),
		"start no task that would lift the load of the machine above this; 0 is no limit")
	fs.IntVar(&f.nice, "nice", 19,
		"priority of the processes, 0 to 19: 19 takes what others leave; never less than that of the queue itself")
	fs.BoolVar(&f.list, "list", false, "print the table of the tasks and run nothing")
	fs.BoolVar(&f.retry, "retry", false, "run failed tasks again")
	return cmd
}

// queue is the state of the command.
type queue struct {
	flags
	path    string // of the file
	load    string // the file of the load averages
	file    *File
	root    func() *cobra.Command // makes the command of the program
	checked map[string]bool       // names with commands that were parsed
	lock    *flock.Flock
	stderr  io.Writer
	program string
	running map[string]*process // by name of the task
	tried   map[string]bool     // tasks that ended under this queue
	ended   chan *process
	waited  time.Time // when the queue last said that it waits
}

// process is the process of a task.
type process struct {
	Task
	counted time.Time // the record has its time until then
	err     error     // at its end
}

// interval is how often the queue looks at the load and renews its table.
const interval = 10 * time.Second

func run(cmd *cobra.Command, root func() *cobra.Command, path string, f flags) error {
	ctx := cmd.Context()
	file, err := ReadFile(path)
	if err != nil {
		return err
	}
	f.cores = cmp.Or(f.cores, runtime.NumCPU())
	q := &queue{flags: f, path: path, load: loadFile, file: file, root: root, stderr: cmd.ErrOrStderr(),
		checked: map[string]bool{}, running: map[string]*process{}, tried: map[string]bool{},
		ended: make(chan *process)}
	if err := q.checkTasks(); err != nil {
		return err
	}
	if !f.list {
		if err := q.open(ctx); err != nil {
			return err
		}
		defer q.lock.Unlock()
		err = q.all(ctx)
	}
	text, tableErr := q.table()
	if tableErr == nil {
		_, tableErr = io.WriteString(cmd.OutOrStdout(), text)
	}
	return errors.Join(err, tableErr)
}

// open makes the folder and locks it. It waits for the tasks of a queue that was killed, which lock
// their run folders until they have written their checkpoints.
func (q *queue) open(ctx context.Context) (err error) {
	if err := command.MakeFolder(q.file.Folder); err != nil {
		return err
	}
	if q.program, err = os.Executable(); err != nil {
		return err
	}
	q.lock = flock.New(filepath.Join(q.file.Folder, ".lock"))
	ok, err := q.lock.TryLock()
	if err == nil && !ok {
		fmt.Fprintf(q.stderr, "waiting for another queue, or its last tasks, in %s\n", q.file.Folder)
		ok, err = q.lock.TryLockContext(ctx, 100*time.Millisecond)
	}
	for _, t := range q.file.Tasks {
		for err == nil && ok && ctx.Err() == nil && inUse(filepath.Join(q.file.Folder, t.Name)) {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if ctx.Err() != nil {
		return command.ErrStopped
	}
	if err != nil || !ok {
		return &train.FolderError{Path: q.file.Folder, Got: "cannot be locked", Err: err}
	}
	return nil
}

// inUse reports whether a process holds the lock of a run in the folder of a task.
func inUse(folder string) bool {
	below, _ := filepath.Glob(filepath.Join(folder, "*", ".lock"))
	own, _ := filepath.Glob(filepath.Join(folder, ".lock"))
	for _, path := range append(below, own...) {
		l := flock.New(path)
		if ok, err := l.TryLock(); err == nil && !ok {
			return true
		}
		_ = l.Unlock() // closes the file
	}
	return false
}

// all runs the tasks until none is left.
func (q *queue) all(ctx context.Context) error {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var failed error
	for {
		next, err := q.next()
		for err == nil && failed == nil && next != nil && ctx.Err() == nil && q.fits(*next) {
			if err = q.start(within, *next); err == nil {
				next, err = q.next()
			}
		}
		if err != nil && failed == nil {
			failed = err
			cancel() // the other tasks stop with checkpoints
		}
		if len(q.running) == 0 && (next == nil || failed != nil || ctx.Err() != nil) {
			break
		}
		select {
		case e := <-q.ended:
			err = q.end(e)
		case <-tick.C:
			err = q.renew()
		case <-ctx.Done():
			if len(q.running) > 0 {
				err = q.end(<-q.ended)
			}
		}
		if err != nil && failed == nil {
			failed = err
			cancel()
		}
	}
	if err := q.renew(); err != nil || failed != nil {
		return errors.Join(failed, err)
	}
	if ctx.Err() != nil {
		fmt.Fprintf(q.stderr, "stopped; the same command continues the tasks in %s\n", q.file.Folder)
		return command.ErrStopped
	}
	return q.failures()
}

// next reads the file again and returns the task to start next; nil if there is none.
func (q *queue) next() (*Task, error) {
	file, err := ReadFile(q.path)
	if err != nil {
		return nil, err
	}
	if file.Folder != q.file.Folder {
		return nil, &train.ConfigError{Key: q.path, Got: "folder " + file.Folder,
			Want: "it was " + q.file.Folder + " when the queue began: start another queue for another folder"}
	}
	q.file = file
	if err := q.checkTasks(); err != nil {
		return nil, err
	}
	var best *Task
	for i := range file.Tasks {
		t := &file.Tasks[i]
		if _, ok := q.running[t.Name]; ok || q.tried[t.Name] || best != nil && best.Priority >= t.Priority {
			continue
		}
		r, err := readRecord(file.Folder, *t)
		if err != nil {
			return nil, err
		}
		if r.Status != Finished && (r.Status != Failed || q.retry) {
			best = t
		}
	}
	return best, nil
}

// fits reports whether a task may start now.
func (q *queue) fits(t Task) bool {
	busy := 0
	for _, r := range q.running {
		busy += r.Cores
	}
	load, ok := loadOf(q.load)
	limit := q.maxLoad
	if !ok {
		limit = 0
	}
	if fits(q.cores, busy, t.Cores, load, limit) {
		return true
	}
	if busy == 0 && time.Since(q.waited) > 10*time.Minute {
		q.waited = time.Now()
		fmt.Fprintf(q.stderr, "%s waits for an idle core: the load of the machine is %.1f, --max-load is %g\n", t.Name,
			load, limit)
	}
	return false
}

// start starts the process of a task.
func (q *queue) start(ctx context.Context, t Task) error {
	folder := filepath.Join(q.file.Folder, t.Name)
	r, err := readRecord(q.file.Folder, t)
	if err != nil {
		return err
	}
	r.Status, r.Exit, r.Version = Running, 0, command.Version()
	if err := r.write(q.file.Folder, t.Name); err != nil {
		return err
	}
	if t.Cores > q.cores {
		fmt.Fprintf(q.stderr, "%s asks for %d cores, and the queue has %d: it runs alone, on these\n", t.Name, t.Cores,
			q.cores)
		t.Cores = q.cores
	}
	_, old := os.Stat(filepath.Join(folder, "config.yaml"))
	cmd, stdin, err := q.launch(t, t.arguments(folder, old == nil))
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { stdin.Close() })
	p := &process{Task: t, counted: time.Now()}
	q.running[t.Name] = p
	fmt.Fprintf(q.stderr, "%s started: fspda %s\n", t.Name, strings.Join(t.Command, " "))
	go func() {
		p.err = cmd.Wait()
		stop()
		cmd.Stdout.(io.Closer).Close()
		q.ended <- p
	}()
	return nil
}

// launch starts a command whose output is appended to the log of a task. It ends when its input
// does.
func (q *queue) launch(t Task, args []string) (*exec.Cmd, io.Closer, error) {
	log, err := os.OpenFile(filepath.Join(q.file.Folder, t.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, &train.FolderError{Path: q.file.Folder, Got: "a log cannot be written", Err: err}
	}
	args = append([]string{q.program}, args...)
	if path, err := exec.LookPath("nice"); err == nil {
		args = append(withNice(path, q.nice, command.Niceness()), args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	command.SetProcessGroup(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(t.Cores), command.StopAtEOF+"=1")
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		log.Close()
		return nil, nil, fmt.Errorf("start task %s: %w", t.Name, err)
	}
	return cmd, stdin, nil
}

// withNice returns the command that starts another at a priority, from a process of priority own:
// nice adds to that, and cannot take from it.
func withNice(path string, priority, own int) []string {
	if priority <= own {
		return nil
	}
	return []string{path, "-n", strconv.Itoa(priority - own)}
}

// end records the end of a task.
func (q *queue) end(p *process) error {
	if err := q.renew(); err != nil {
		return err
	}
	delete(q.running, p.Name)
	exit := 0
	if p.err != nil {
		exit = command.ExitFailed
		if coder, ok := errors.AsType[*exec.ExitError](p.err); ok {
			exit = coder.ExitCode()
		}
	}
	r, err := readRecord(q.file.Folder, p.Task)
	if err != nil {
		return err
	}
	r.Exit, r.Status = exit, statusOf(exit)
	q.tried[p.Name] = true
	fmt.Fprintf(q.stderr, "%s %s after %s in all\n", p.Name, r.Status, command.Seconds(r.Seconds))
	return errors.Join(r.write(q.file.Folder, p.Name), q.renew())
}

// renew adds to the time of the running tasks and writes the table.
func (q *queue) renew() error {
	for name, p := range q.running {
		r, err := readRecord(q.file.Folder, p.Task)
		if err != nil {
			return err
		}
		now := time.Now()
		r.Seconds += now.Sub(p.counted).Seconds()
		p.counted = now
		if err := r.write(q.file.Folder, name); err != nil {
			return err
		}
	}
	text, err := q.table()
	return errors.Join(err, command.WriteFile(filepath.Join(q.file.Folder, "queue.md"), text))
}

// failures returns an error that names the tasks that failed or were stopped by others.
func (q *queue) failures() error {
	names := map[Status][]string{}
	for _, t := range q.file.Tasks {
		r, err := readRecord(q.file.Folder, t)
		if err != nil {
			r.Status = Failed
		}
		names[r.Status] = append(names[r.Status], t.Name)
	}
	var errs []error
	if failed := names[Failed]; failed != nil {
		errs = append(errs, fmt.Errorf("tasks failed: %s: read NAME.log in %s, and run them again with --retry",
			strings.Join(failed, ", "), q.file.Folder))
	}
	if stopped := names[Stopped]; stopped != nil {
		errs = append(errs, fmt.Errorf("processes of tasks were ended by others, as for lack of memory: %s: read "+
			"NAME.log in %s; the same command continues the tasks", strings.Join(stopped, ", "), q.file.Folder))
	}
	return errors.Join(errs...)
}
