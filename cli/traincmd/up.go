package traincmd

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/dist/discover"
	"fspda/dist/link"
	"fspda/internal/cgroup"
	"fspda/internal/lockfile"
	"fspda/internal/wholefile"
	"fspda/train"
	"fspda/train/memory"
	"fspda/train/process"
	"fspda/train/runfolder"
)

// upFlags are the flags of a run of many processes on this machine that are no keys of its
// configuration.
type upFlags struct {
	trainFlags
	agents   int
	run      string
	packing  string
	restarts int
	async    bool
	timeout  time.Duration
}

func newUp() *cobra.Command {
	var f upFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all agents on this machine, each a process of its own",
		Long: `Run all agents on this machine, each as a process of its own that reaches the others over the network.

The results are those of "fspda train" with the same configuration, bit for bit. A process that dies is started again
and resumes from its checkpoint.`,
		Example: `  fspda up -n 10 -c run.yaml --out runs/many
  fspda up -n 4 --iterations 1000 --checkpoint-every 5`,
	}
	fs := cmd.Flags()
	f.add(fs, "run folder; the default is the next free runs/up-ALGO-DATA-NUMBER")
	fs.IntVarP(&f.agents, "processes", "n", 0, "number of agents, as --agents")
	fs.StringVar(&f.run, "run", "fspda", "name of the run")
	fs.BoolVar(&f.resume, "resume", false, "resume the run in --out")
	fs.StringVar(&f.packing, "packing", "none", "lossless compression of messages: none, s2 or zstd")
	fs.IntVar(&f.restarts, "restarts", 20, "how often an agent that dies is started again within an hour")
	fs.BoolVar(&f.async, "async", false,
		"agents do not wait for each other: the same as --algo fspda-async --clock real")
	fs.Lookup("metrics-listen").Usage = "HOST:PORT for Prometheus and probes, as in fspda agent: agent I has port " +
		"PORT+I, or any free port if PORT is 0"
	fs.StringVar(&f.web, "web", "", webHelp+"; its numbers are those of the run folder")
	addTimeout(fs, &f.timeout, "")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return runUp(cmd.Context(), f, fs, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// runUp writes the configuration for the agents, starts them and waits for the run to end.
func runUp(ctx context.Context, f upFlags, fs *pflag.FlagSet, stdout, stderr io.Writer) error {
	c, err := f.config(fs)
	if err != nil {
		return err
	}
	if err := f.change(&c, fs); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if err := f.check(c.Agents); err != nil {
		return err
	}
	if _, err := c.ReadLinks(); err != nil { // one error in place of one from each agent
		return err
	}
	if free, ok := memory.Free(); ok && uint64(c.Agents) > free/leastProcess {
		return &train.ConfigError{Key: "agents", Got: strconv.Itoa(c.Agents), Want: "as many processes take more " +
			"than the memory that is free, " + memory.FreeText(free) + ": use fewer, or fspda train, which holds " +
			"all agents in one process"}
	}
	if f.out == "" {
		f.out = command.NextFreeName("up-" + c.Algo + "-" + c.Data)
	}
	if err := f.checkFolder(c); err != nil {
		return err
	}
	start, err := openStart(f.out)
	if err != nil {
		return err
	}
	defer start.close()
	if err := start.write(f.run, c); err != nil {
		return err
	}
	var joins string
	var addresses []string
	if c.Elastic() { // The agents find each other without a server of one of them.
		addresses, err = start.writePeers(c.Agents)
	} else if p, failed := start.port(); failed == nil {
		joins = p.Address()
	} else {
		err = failed
	}
	if err != nil {
		return err
	}
	log := newLogger(&f.trainFlags, stderr)
	closePage, err := serveFiles(f.web, f.out, log)
	if err != nil {
		return err
	}
	defer closePage()
	u := &agentProcesses{flags: f, agents: c.Agents, file: start.config(), explicit: setup.Flags(c),
		certs: start.certs(), joins: joins, peers: start.peers(), addresses: addresses,
		stdout: stdout, stderr: zapcore.Lock(zapcore.AddSync(stderr)),
		log: log}
	return u.run(ctx)
}

// check checks the flags of all agents, so that none is started in vain.
func (f *upFlags) check(agents int) error {
	if f.restarts < 0 {
		return command.UsageErrorf("--restarts %d: expected 0 or more", f.restarts)
	}
	if _, err := link.ParseCompression(f.packing); err != nil {
		return command.UsageErrorf("--packing: %v", err)
	}
	if err := discover.CheckRun(f.run); err != nil {
		return command.UsageErrorf("--run: %v", err)
	}
	_, err := metricsAddress(f.metrics, agents-1)
	return cmp.Or(checkTimeout(f.timeout), err)
}

// change sets the keys that --processes and --async stand for. As these flags, they win over a
// file, and beside them another value is refused.
func (f *upFlags) change(c *train.Config, fs *pflag.FlagSet) error {
	if fs.Changed("processes") {
		if fs.Changed("agents") && c.Agents != f.agents {
			return command.UsageErrorf("--processes %d --agents %d: each process is one agent, so leave one of the "+
				"two out", f.agents, c.Agents)
		}
		c.Agents = f.agents
	}
	if !f.async {
		return nil
	}
	for key, v := range map[string][2]string{"algo": {c.Algo, "fspda-async"}, "clock": {c.Clock, "real"}} {
		if fs.Changed(key) && v[0] != v[1] {
			return command.UsageErrorf("--async --%s %s: --async is --%s %s, so leave one of the two out", key,
				v[0], key, v[1])
		}
	}
	c.Algo, c.Clock = "fspda-async", "real"
	return nil
}

// checkFolder refuses a run folder whose run the agents would not resume, before any of them
// starts.
func (f *upFlags) checkFolder(c train.Config) error {
	old, err := train.ReadConfig(f.out)
	held, _ := lockfile.Held(f.out)
	switch {
	case err != nil: // no run yet; agent 0 reports any other fault
		return nil
	case !f.resume:
		return &train.FolderError{Path: f.out, Got: "already holds a run",
			Hint: "add --resume to resume it, or choose another folder with --out"}
	case old.Agents != c.Agents:
		return &train.FolderError{Path: f.out, Got: fmt.Sprintf("holds a run of another configuration: agents (%d "+
			"there, %d here)", old.Agents, c.Agents), Hint: fmt.Sprintf("resume it with %d agents, or choose another "+
			"folder with --out", old.Agents)}
	case held:
		return &train.FolderError{Path: f.out, Got: "is in use by another process",
			Hint: "wait for it, or choose another folder with --out"}
	}
	if len(c.Differences(old)) > 0 {
		if err := checkResume(f.out, c); err != nil {
			return err
		}
	}
	return runfolder.CheckAgents(f.out)
}

// checkResume returns the reason why the run in a folder cannot be resumed with a configuration,
// which may have values that are yet to be resolved.
func checkResume(folder string, c train.Config) error {
	host := c
	host.Device = "cpu"
	dev, err := setup.OpenDevice(host, 1)
	if err != nil {
		return err
	}
	defer dev.Close()
	set, err := setup.OpenData(c)
	if err != nil {
		return err
	}
	defer set.Close()
	s, _, err := setup.ResolveAgent(c, set, dev.Device)
	if err != nil {
		return err
	}
	return runfolder.CheckResume(folder, s)
}

// leastProcess is less than the bytes that the process of an agent takes, whatever it trains.
const leastProcess = 16 << 20

// metricsAddress returns the address at which an agent serves its metrics: PORT+rank, or port 0 if
// PORT is 0. No address gives no address.
func metricsAddress(address string, rank int) (string, error) {
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

// agentProcesses is the processes of a run on this machine.
type agentProcesses struct {
	flags  upFlags
	agents int
	file   string
	certs  string
	joins  string // The address of the first agent.
	peers  string // The file with the addresses of the agents of an elastic run.
	// addresses are those in the file; empty: the members do not change.
	addresses []string
	// flags of the keys that were set explicitly, which the agents refuse if they have no effect
	explicit []string
	stdout   io.Writer
	stderr   io.Writer
	log      *zap.Logger
	given    givenUp
}

// givenUp counts the agents that are not started again.
type givenUp struct {
	sync.Mutex
	up int
}

// elastic reports whether the members change.
func (u *agentProcesses) elastic() bool { return len(u.addresses) > 0 }

// exitTimeout is the time in which the other agents must exit after agent 0.
const exitTimeout = 20 * time.Second

// run starts all agents and supervises them until agent 0 ends.
func (u *agentProcesses) run(ctx context.Context) error {
	all, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, u.agents)
	var rest sync.WaitGroup
	first := make(chan struct{})
	for i := range u.agents {
		supervise := func() {
			if errs[i] = u.supervise(all, i); errs[i] != nil && !u.goesOnWithout(errs, i) {
				cancel() // the run cannot go on without this agent
			}
		}
		if i == process.Coordinator && !u.elastic() {
			go func() { defer close(first); supervise() }()
		} else {
			rest.Go(supervise)
		}
	}
	if u.elastic() {
		rest.Wait()
		return worst(errs)
	}
	<-first
	gone := make(chan struct{})
	go func() { rest.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(exitTimeout):
		cancel()
		<-gone
	}
	return worst(errs)
}

// goesOnWithout reports whether the others go on without an agent that has ended with an error. errs
// is nil for it then.
func (u *agentProcesses) goesOnWithout(errs []error, agent int) bool {
	e, ended := errors.AsType[*exitError](errs[agent])
	if !u.elastic() || !ended || e.status == command.ExitStopped || e.status == command.ExitDiverged {
		return false
	}
	u.log.Warn("an agent is not started again; the others go on without it", zap.Int("agent", agent), zap.Error(e))
	u.given.Lock()
	defer u.given.Unlock()
	if u.given.up++; u.given.up == u.agents {
		return false
	}
	errs[agent] = nil
	return true
}

// worst picks the error to report: of an agent that could not be started, or else of one that
// failed, or else of agent 0, which ends as the run does.
func worst(errs []error) error {
	var limit, start, failed error
	for _, err := range errs {
		e, ended := errors.AsType[*exitError](err)
		switch {
		case err == nil:
		case wholefile.LimitHint(err) != "":
			limit = cmp.Or(limit, err)
		case !ended:
			start = cmp.Or(start, err)
		case e.status != command.ExitStopped && e.status != command.ExitDiverged:
			failed = cmp.Or(failed, err)
		}
	}
	return cmp.Or(limit, start, failed, errs[process.Coordinator])
}

// exitError reports an agent's process that exited with a status other than 0. The process has
// logged the reason, unless the system ended it.
type exitError struct {
	agent, status int
	killed        string // How the system ended it; empty if it exited.
	said          string // The error that it printed last; empty: none.
}

func (e *exitError) Error() string {
	switch {
	case e.killed != "":
		return fmt.Sprintf("agent %d was ended again and again, the last time by %s: all agents were stopped, and "+
			"their checkpoints are kept: remove the cause, then resume with --resume", e.agent, e.killed)
	case e.status == command.ExitDiskFull:
		return fmt.Sprintf("agent %d ended because a disk is full; its log above names the file: all agents were "+
			"stopped, and their checkpoints are kept: make room, then resume with --resume", e.agent)
	}
	said := cmp.Or(e.said, "its log above says why")
	return fmt.Sprintf("agent %d ended with exit status %d: %s", e.agent, e.status, said)
}

func (e *exitError) ExitCode() int { return e.status }

// supervise restarts the process of an agent until it is done or cannot succeed.
func (u *agentProcesses) supervise(ctx context.Context, rank int) error {
	const shortest, longest = 200 * time.Millisecond, 5 * time.Second
	wait := shortest
	var deaths []time.Time
	for {
		begin, kills := time.Now(), cgroup.OutOfMemory()
		state, said, err := u.start(ctx, rank)
		if time.Since(begin) > 4*longest { // it ran normally
			wait = shortest
		}
		if err != nil {
			return &startError{rank, err}
		}
		deaths = died(deaths, time.Now())
		status, killed := ended(state, cgroup.OutOfMemory() > kills)
		switch {
		case status == 0:
			return nil
		case status == command.ExitStopped && ctx.Err() != nil, status == command.ExitDiverged,
			status == command.ExitBadInput, status == command.ExitDiskFull:
			return &exitError{rank, status, "", said}
		case ctx.Err() != nil:
			return &exitError{agent: rank, status: command.ExitStopped}
		case len(deaths) > u.flags.restarts:
			return &exitError{rank, status, killed, said}
		}
		how := zap.Int("status", status)
		if killed != "" {
			how = zap.String("by", killed)
		}
		u.log.Warn("an agent died; restarting it", zap.Int("agent", rank), how)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return &exitError{agent: rank, status: command.ExitStopped}
		}
		wait = min(2*wait, longest)
	}
}

// restartsWithin is the time in which restarts are counted. A long run may have any number of them.
const restartsWithin = time.Hour

// died adds a time to the times at which a process died, and removes times that are too old to
// count.
func died(deaths []time.Time, now time.Time) []time.Time {
	return append(slices.DeleteFunc(deaths, func(at time.Time) bool { return now.Sub(at) > restartsWithin }), now)
}

// startError reports an agent whose process could not be started.
type startError struct {
	agent int
	err   error
}

func (e *startError) Error() string {
	hint := cmp.Or(wholefile.LimitHint(e.err), "make that possible, then start again")
	return fmt.Sprintf("the process of agent %d cannot be started: %v: %s", e.agent, e.err, hint)
}

func (e *startError) Unwrap() error { return e.err }

// ended returns the exit status of a process, ExitFailed if the system ended it, and how it did.
func ended(p *os.ProcessState, outOfMemory bool) (status int, killed string) {
	if status = p.ExitCode(); status >= 0 {
		return status, ""
	}
	killed = p.String() // names the signal
	switch {
	case outOfMemory:
		killed += ", since the control group has no memory left"
	case strings.Contains(killed, "killed"):
		killed += ", which the system sends where memory is short"
	}
	return command.ExitFailed, killed
}

// start runs the process of an agent once, and returns how it ended, and the error that
// it printed.
func (u *agentProcesses) start(ctx context.Context, rank int) (state *os.ProcessState, said string, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(program, u.arguments(rank)...)
	stdin, err := cmd.StdinPipe() // the agent stops in order when this pipe closes
	if err != nil {
		return nil, "", err
	}
	defer stdin.Close()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	defer stderr.Close()
	if rank == process.Coordinator || u.elastic() { // The agent that writes the run folder prints results.
		cmd.Stdout = u.stdout
	}
	cmd.Env = WithoutLauncher(os.Environ())
	command.SetProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	u.log.Info("started", zap.Int("agent", rank), zap.Int("pid", cmd.Process.Pid))
	defer context.AfterFunc(ctx, func() { stdin.Close() })()
	said = u.relay(rank, stderr)
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		return nil, "", err
	}
	return cmd.ProcessState, said, nil
}

func (u *agentProcesses) arguments(rank int) []string {
	args := []string{"agent", "-c", u.file, "--out", u.flags.out, "--run", u.flags.run, "--rank", strconv.Itoa(rank),
		"--certs", u.certs, "--exit-with-parent", "--packing", u.flags.packing, "--timeout", u.flags.timeout.String()}
	switch {
	case u.elastic():
		args = append(args, "--peers", u.peers, "--listen", u.addresses[rank])
	case rank == process.Coordinator:
		args = append(args, "--join", u.joins, "--listen", u.joins)
	default:
		args = append(args, "--join", u.joins, "--listen", "127.0.0.1:0")
	}
	if u.flags.quiet {
		args = append(args, "--quiet")
	}
	if u.flags.json {
		args = append(args, "--json")
	}
	if at, err := metricsAddress(u.flags.metrics, rank); err == nil && at != "" { // runUp has checked it
		args = append(args, "--metrics-listen", at)
	}
	return append(args, u.explicit...)
}

// lastError returns the error of a process after one more line of its log: what the program said
// last, or else all that Go's runtime said when it ended the program.
func lastError(said, line string) string {
	if text, ok := strings.CutPrefix(line, "fspda: "); ok {
		return text
	}
	for _, begin := range []string{"runtime: ", "fatal error: ", "panic: "} {
		if strings.HasPrefix(line, begin) {
			return strings.TrimPrefix(said+"; "+line, "; ")
		}
	}
	return said
}

// relay copies the log of an agent line by line, each with its rank, and returns the last error in
// it. JSON lines name the rank already.
func (u *agentProcesses) relay(rank int, stderr io.Reader) (said string) {
	sc := bufio.NewScanner(stderr)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		said = lastError(said, sc.Text())
		if u.flags.json {
			fmt.Fprintf(u.stderr, "%s\n", sc.Bytes())
			continue
		}
		fmt.Fprintf(u.stderr, "[%d] %s\n", rank, sc.Bytes())
	}
	_, _ = io.Copy(io.Discard, stderr)
	return said
}
