package experimentcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/internal/cgroup"
	"fspda/internal/lockfile"
	"fspda/train"
)

type queueFlags struct {
	cores       int
	maxLoad     float64
	nice        int
	list, retry bool
}

// queueNames are the names of the flags of queueFlags.
const queueNames = " cores max-load nice list retry"

func (f *queueFlags) declare(fs *pflag.FlagSet) {
	fs.IntVar(&f.cores, "cores", 0, "cores that the tasks of a list use together; 0 is all")
	fs.Float64Var(&f.maxLoad, "max-load", float64(cgroup.Processors()),
		"start no task of a list that would lift the load of the machine above this; 0 is no limit")
	fs.IntVar(&f.nice, "nice", 19, "priority of the processes of a list, 0 to 19: 19 takes what others leave; "+
		"never less "+
		"than that of the command itself")
	fs.BoolVar(&f.list, "list", false, "print the table of the tasks of a list and run nothing")
	fs.BoolVar(&f.retry, "retry", false, "run failed tasks of a list again")
}

func (f *queueFlags) check() error {
	switch {
	case f.cores < 0:
		return command.UsageErrorf("--cores is %d, expected at least 1, or 0 for all", f.cores)
	case !(f.maxLoad >= 0):
		return command.UsageErrorf("--max-load is %g, expected a load above 0, or 0 for none", f.maxLoad)
	case f.nice < 0 || f.nice > 19:
		return command.UsageErrorf("--nice is %d, expected 0 to 19", f.nice)
	}
	return nil
}

// queue is the state of the command.
type queue struct {
	queueFlags
	path    string // File of the list.
	load    string // File of the load averages.
	folder  string // Folder of the results.
	given   string // The folder that the file names.
	tasks   []bench.Task
	records map[string]Record     // Records of tasks by name.
	root    func() *cobra.Command // Makes the command of the program.
	checked map[string]bool       // Names with commands that were parsed.
	lock    *flock.Flock
	stderr  io.Writer
	program string
	running map[string]*process // Running tasks by name.
	tried   map[string]bool     // Tasks that ended under this queue.
	ended   chan *process
	waited  time.Time // Time of the last line about waiting.
}

func newQueue(f queueFlags, path, folder, given string, root func() *cobra.Command, stderr io.Writer) *queue {
	return &queue{queueFlags: f, path: path, load: loadFile, folder: folder, given: given, root: root, stderr: stderr,
		records: map[string]Record{}, checked: map[string]bool{}, running: map[string]*process{},
		tried: map[string]bool{}, ended: make(chan *process)}
}

type process struct {
	bench.Task
	counted time.Time // time until which the record counts the run time
	err     error     // error at its end
}

// interval is the time after which the queue looks at the load and renews its table again.
const interval = 10 * time.Second

// runQueue runs the files and commands that an experiment lists.
func (f *flags) runQueue(ctx context.Context, e *bench.Experiment, root func() *cobra.Command, stdout,
	stderr io.Writer) error {

	q := newQueue(f.queueFlags, f.file, f.folder(e), e.Folder, root, stderr)
	q.cores = cmp.Or(q.cores, f.threads, cgroup.Processors())
	err := q.read()
	if err != nil {
		return err
	}
	if !f.list {
		if err := q.open(ctx); err != nil {
			return err
		}
		defer q.lock.Unlock()
		err = q.all(ctx)
	}
	_, tableErr := io.WriteString(stdout, q.table())
	return errors.Join(err, tableErr)
}

// open makes the folder and locks it. It waits for the tasks of a queue that was killed, which lock
// their run folders until they have written their checkpoints.
func (q *queue) open(ctx context.Context) (err error) {
	if err := command.MakeFolder(q.folder); err != nil {
		return err
	}
	if q.program, err = os.Executable(); err != nil {
		return err
	}
	q.lock = flock.New(filepath.Join(q.folder, ".lock"))
	ok, err := q.lock.TryLock()
	if err == nil && !ok {
		fmt.Fprintf(q.stderr, "waiting for another queue, or its last tasks, in %s\n", q.folder)
		ok, err = q.lock.TryLockContext(ctx, 100*time.Millisecond)
	}
	for _, t := range q.tasks {
		for err == nil && ok && ctx.Err() == nil && inUse(filepath.Join(q.folder, t.Name)) {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if ctx.Err() != nil {
		return command.ErrStopped
	}
	if err != nil || !ok {
		return &train.FolderError{Path: q.folder, Got: "cannot be locked", Err: err}
	}
	return nil
}

// inUse reports whether a process holds the lock of a run in the folder of a task.
func inUse(folder string) bool {
	below, _ := filepath.Glob(filepath.Join(folder, "*"))
	return slices.ContainsFunc(append(below, folder), func(f string) bool {
		held, _ := lockfile.Held(f)
		return held
	})
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
		fmt.Fprintf(q.stderr, "stopped; the same command continues the tasks in %s\n", q.folder)
		return command.ErrStopped
	}
	return q.failures()
}

// next reads the file again and returns the task to start next; nil if there is none.
func (q *queue) next() (*bench.Task, error) {
	if err := q.read(); err != nil {
		return nil, err
	}
	var best *bench.Task
	for i := range q.tasks {
		t := &q.tasks[i]
		if _, ok := q.running[t.Name]; ok || q.tried[t.Name] || best != nil && best.Priority >= t.Priority {
			continue
		}
		if s := q.records[t.Name].Status; s != Finished && (s != Failed || q.retry) {
			best = t
		}
	}
	return best, nil
}

// fits reports whether a task may start now.
func (q *queue) fits(t bench.Task) bool {
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

func (q *queue) start(ctx context.Context, t bench.Task) error {
	folder := filepath.Join(q.folder, t.Name)
	r := q.records[t.Name]
	r.Status, r.Exit, r.Version = Running, 0, command.Version()
	if err := q.put(t.Name, r); err != nil {
		return err
	}
	if t.Cores > q.cores {
		fmt.Fprintf(q.stderr, "%s asks for %d cores, and the queue has %d: it runs alone, on these\n", t.Name, t.Cores,
			q.cores)
		t.Cores = q.cores
	}
	_, old := os.Stat(filepath.Join(folder, "config.yaml"))
	cmd, log, stdin, err := q.launch(t, t.Arguments(folder, old == nil))
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
		log.Close()
		q.ended <- p
	}()
	return nil
}

// launch starts a command whose output is appended to the log of a task. It ends when its input
// does.
func (q *queue) launch(t bench.Task, args []string) (cmd *exec.Cmd, log *os.File, stdin io.Closer, err error) {
	log, err = os.OpenFile(filepath.Join(q.folder, t.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, nil, nil, &train.FolderError{Path: q.folder, Got: "a log cannot be written", Err: err}
	}
	args = append([]string{q.program}, args...)
	if path, err := exec.LookPath("nice"); err == nil {
		args = append(withNice(path, q.nice, command.Niceness()), args...)
	}
	cmd = exec.Command(args[0], args[1:]...)
	command.SetProcessGroup(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(t.Cores), command.StopAtEOF+"=1")
	stdin, err = cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		log.Close()
		return nil, nil, nil, fmt.Errorf("start task %s: %w", t.Name, err)
	}
	return cmd, log, stdin, nil
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
	r := q.records[p.Name]
	r.Exit, r.Status = exit, statusOf(exit)
	q.tried[p.Name] = true
	fmt.Fprintf(q.stderr, "%s %s after %s in all\n", p.Name, r.Status, command.Seconds(r.Seconds))
	return errors.Join(q.put(p.Name, r), q.renew())
}

// renew adds to the time of the running tasks and writes the table.
func (q *queue) renew() error {
	var errs []error
	for name, p := range q.running {
		r, now := q.records[name], time.Now()
		r.Seconds += now.Sub(p.counted).Seconds()
		p.counted = now
		errs = append(errs, q.put(name, r))
	}
	return errors.Join(append(errs, command.WriteFile(filepath.Join(q.folder, "queue.md"), q.table()))...)
}

// failures returns an error that names the tasks that failed or were stopped by others.
func (q *queue) failures() error {
	names := map[Status][]string{}
	for _, t := range q.tasks {
		names[q.records[t.Name].Status] = append(names[q.records[t.Name].Status], t.Name)
	}
	var errs []error
	if failed := names[Failed]; failed != nil {
		errs = append(errs, fmt.Errorf("tasks failed: %s: read NAME.log in %s, and run them again with --retry",
			strings.Join(failed, ", "), q.folder))
	}
	if stopped := names[Stopped]; stopped != nil {
		errs = append(errs, fmt.Errorf("processes of tasks were ended by others, as for lack of memory: %s: read "+
			"NAME.log in %s; the same command continues the tasks", strings.Join(stopped, ", "), q.folder))
	}
	return errors.Join(errs...)
}
