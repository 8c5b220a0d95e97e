package traincmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/train"
)

// upFlags are what is said of a run of many processes on this machine besides its Config.
type upFlags struct {
	trainFlags
	agents   int
	run      string
	packing  string
	restarts int
	async    bool
	metrics  string
	weather  string
}

func newUp() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all agents on this machine, each a process of its own",
		Long: `Run all agents on this machine, each a process of its own that meets the others over the network.

The run is the one that "fspda train" would make of the same configuration, to the bit. A process that dies is started again and goes on from
its checkpoint.`,
		Example: `  fspda up -n 10 -c run.yaml --out runs/many
  fspda up -n 4 --iterations 1000 --checkpoint-every 5`,
		Args: command.NoArgs,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	said := train.Default()
	setup.ConfigFlags(fs, &said)
	fs.IntVarP(&f.agents, "processes", "n", 0, "number of agents, as --agents")
	fs.StringVarP(&f.file, "config", "c", "", "YAML file of the keys above")
	fs.StringVar(&f.out, "out", "", "run folder; the default is the next free runs/up-ALGO-DATA-NUMBER")
	fs.StringVar(&f.run, "run", "fspda", "name of the run")
	fs.BoolVar(&f.resume, "resume", false, "go on with the run in --out")
	fs.StringVar(&f.packing, "packing", "none", "lossless compression of messages: none, s2 or zstd")
	fs.IntVar(&f.restarts, "restarts", 20, "how often an agent that dies is started again")
	fs.BoolVar(&f.async, "async", false, "agents wait for nobody: as --algo fspda-async --clock real")
	fs.StringVar(&f.metrics, "metrics-listen", "",
		"HOST:PORT for Prometheus and probes, as of fspda agent: agent I has port PORT+I, or any where PORT is 0")
	fs.StringVar(&f.weather, "weather", "", "file of a bad network")
	_ = fs.MarkHidden("weather") // of tests
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.json, "json", false, "log JSON lines and print the summary as JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runUp(cmd.Context(), f, fs, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// runUp is the command.
func runUp(ctx context.Context, f upFlags, fs *pflag.FlagSet, stdout, stderr io.Writer) error {
	c, err := f.config(fs)
	if err != nil {
		return err
	}
	if f.agents > 0 {
		c.Agents = f.agents
	}
	if f.async {
		c.Algo, c.Clock = "fspda-async", "real"
	}
	if err := c.Check(); err != nil {
		return err
	}
	if _, err := metricsOf(f.metrics, c.Agents-1); err != nil {
		return err
	}
	if f.out == "" {
		f.out = command.NextFreeName(command.RunsDir, "up-"+c.Algo+"-"+c.Data)
	}
	if _, err := train.ReadConfig(f.out); err == nil && !f.resume {
		return &train.FolderError{Path: f.out, Got: "already holds a run",
			Hint: "add --resume to go on with it, or choose another folder with --out"}
	}
	file, remove, err := leaveConfig(f.out, c)
	if err != nil {
		return err
	}
	defer remove()
	port, err := freePort()
	if err != nil {
		return err
	}
	u := &crew{flags: f, agents: c.Agents, file: file, port: port, stdout: stdout, stderr: &lockedWriter{w: stderr},
		log: newLogger(f.trainFlags, stderr)}
	return u.run(ctx)
}

// leaveConfig writes the configuration where the agents read it: beside their checkpoints, so that
// nothing is left elsewhere if this process is killed.
func leaveConfig(out string, c train.Config) (file string, remove func(), err error) {
	dir := filepath.Join(out, "agents")
	ours := []string{filepath.Join(dir, "up.yaml"), dir}
	if _, err := os.Stat(out); err != nil {
		ours = append(ours, out)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, &train.FolderError{Path: dir, Got: "cannot be made", Err: err}
	}
	file = ours[0]
	remove = func() {
		for _, path := range ours { // a folder only goes where no agent came to make anything in it
			_ = os.Remove(path)
		}
	}
	if err := os.WriteFile(file, c.YAML(), 0o600); err != nil {
		remove()
		return "", nil, &train.FolderError{Path: file, Got: "cannot be written", Err: err}
	}
	return file, remove, nil
}

// metricsOf is where an agent of a crew shows its metrics: each has a port of its own, by its rank.
// "" is nowhere.
func metricsOf(address string, rank int) (string, error) {
	if address == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", command.UsageErrorf("--metrics-listen %s: write HOST:PORT", address)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 0 && n+rank > 65535 {
		return "", command.UsageErrorf("--metrics-listen %s: agent %d would have port %s+%d: choose one up to %d",
			address, rank, port, rank, 65535-rank)
	}
	if n > 0 {
		n += rank
	}
	return net.JoinHostPort(host, strconv.Itoa(n)), nil
}

// freePort finds a port of this machine that nobody uses.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// crew is the processes of a run.
type crew struct {
	flags  upFlags
	agents int
	file   string
	port   string
	stdout io.Writer
	stderr io.Writer
	log    *zap.Logger
}

// leaveTime is how long the others may take to end after agent 0 has.
const leaveTime = 20 * time.Second

// run starts all agents and follows them to the end of agent 0.
func (u *crew) run(ctx context.Context) error {
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, u.agents)
	var rest sync.WaitGroup
	first := make(chan struct{})
	for i := range u.agents {
		follow := func() {
			if errs[i] = u.follow(all, i); errs[i] != nil {
				cancel() // no run without this agent
			}
		}
		if i == train.Coordinator {
			go func() { defer close(first); follow() }()
		} else {
			rest.Go(follow)
		}
	}
	<-first
	gone := make(chan struct{})
	go func() { rest.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(leaveTime):
		cancel()
		<-gone
	}
	return worst(errs)
}

// worst picks the error that says most of the end of a run: agent 0 ends as the run does, unless
// another could not even begin.
func worst(errs []error) error {
	for _, err := range errs {
		var e *exitError
		if errors.As(err, &e) && e.status != command.ExitStopped && e.status != command.ExitDiverged {
			return err
		}
	}
	return errs[train.Coordinator]
}

// exitError is a process that ended with a status other than 0. It has said why.
type exitError struct{ agent, status int }

func (e *exitError) Error() string {
	return fmt.Sprintf("agent %d ended with exit status %d; what it said stands above", e.agent, e.status)
}

// ExitCode returns the status of the process.
func (e *exitError) ExitCode() int { return e.status }

// follow keeps one agent running until it is done, or cannot be.
func (u *crew) follow(ctx context.Context, rank int) error {
	const soon, late = 200 * time.Millisecond, 5 * time.Second
	wait := soon
	for try := 0; ; try++ {
		begin := time.Now()
		status, err := u.start(ctx, rank)
		if time.Since(begin) > 4*late { // it was well
			wait = soon
		}
		switch {
		case err != nil:
			return err
		case status == 0:
			return nil
		case status == command.ExitStopped && ctx.Err() != nil, status == command.ExitDiverged, status == command.ExitBadInput:
			return &exitError{rank, status}
		case ctx.Err() != nil:
			return &exitError{rank, command.ExitStopped}
		case try == u.flags.restarts:
			return &exitError{rank, command.ExitFailed}
		}
		u.log.Warn("an agent died; starting it again", zap.Int("agent", rank), zap.Int("status", status))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return &exitError{rank, command.ExitStopped}
		}
		wait = min(2*wait, late)
	}
}

// start runs the process of an agent once, and returns its exit status.
func (u *crew) start(ctx context.Context, rank int) (int, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(program, u.arguments(rank)...)
	leash, err := cmd.StdinPipe() // the agent stops in order when it ends: when we say so, or are gone
	if err != nil {
		return 0, err
	}
	said, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if rank == train.Coordinator {
		cmd.Stdout = u.stdout
	}
	command.SetProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("agent %d cannot be started: %w", rank, err)
	}
	u.log.Info("started", zap.Int("agent", rank), zap.Int("pid", cmd.Process.Pid))
	defer context.AfterFunc(ctx, func() { leash.Close() })()
	u.relay(rank, said)
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return 0, err
	}
	if status := cmd.ProcessState.ExitCode(); status >= 0 {
		return status, nil
	}
	return command.ExitFailed, nil // ended by a signal
}

func (u *crew) arguments(rank int) []string {
	args := []string{"agent", "-c", u.file, "--out", u.flags.out, "--run", u.flags.run, "--rank", strconv.Itoa(rank),
		"--join", "127.0.0.1:" + u.port,
		"--insecure", "--leash", "--packing", u.flags.packing}
	if u.flags.quiet {
		args = append(args, "--quiet")
	}
	if u.flags.json {
		args = append(args, "--json")
	}
	if at, err := metricsOf(u.flags.metrics, rank); err == nil && at != "" { // it was checked before
		args = append(args, "--metrics-listen", at)
	}
	if u.flags.weather != "" {
		args = append(args, "--weather", u.flags.weather)
	}
	return args
}

// relay passes on what an agent says, line by line, each with its rank. JSON lines have it already.
func (u *crew) relay(rank int, said io.Reader) {
	sc := bufio.NewScanner(said)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if u.flags.json {
			fmt.Fprintf(u.stderr, "%s\n", sc.Bytes())
			continue
		}
		fmt.Fprintf(u.stderr, "[%d] %s\n", rank, sc.Bytes())
	}
	_, _ = io.Copy(io.Discard, said)
}

// lockedWriter keeps the lines of several processes apart.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
