package traincmd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/data"
	"fspda/dist"
	"fspda/dist/discover"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
	"fspda/internal/cgroup"
	"fspda/model"
	"fspda/train"
	"fspda/train/memory"
	"fspda/train/runfolder"
)

// agentFlags are the flags of one agent's process that are no keys of the run's configuration.
type agentFlags struct {
	trainFlags
	connection
	run            string
	rank           int
	timeout        time.Duration
	patient        bool // The user gave timeout.
	mustResume     bool
	exitWithParent bool
}

func newAgent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run one agent; the others run in other processes or on other machines",
		Long: `Run one agent of a run whose other agents are other processes, here or on other machines.

All agents are given the same configuration and their rank, 0 to agents-1. Agent 0 listens at the address of --join;
the others find it there, and each other through it. Or a file gives the address of each agent (--peers). With
--membership elastic --join has the addresses of several agents, of which any may leave. Agent 0
also evaluates and writes the run folder; the others keep their own checkpoints in theirs. An agent that ends for any
reason can be started again with the same command: it resumes from its checkpoint, and the results of the run do not
change.

Rank, number of agents and address may also come from the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT;
SLURM_PROCID and SLURM_NTASKS; OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE. Flags win.

Machines authenticate each other by certificates, which "fspda certs" makes. Without certificates, with --insecure,
all agents must run on one machine.`,
		Example: `  fspda certs --out certs --run digits -n 4
  fspda agent -c run.yaml --join 10.0.0.1:4700 --rank 2 --run digits --certs certs
  fspda agent -c run.yaml --join 127.0.0.1:4700 --rank 0 --insecure
  fspda agent -c run.yaml --peers peers.yaml --rank 2 --run digits --certs certs
  srun fspda agent -c run.yaml --join $MASTER:4700 --certs certs`,
	}
	f.add(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, restore := command.UntilUSR1(cmd.Context())
		defer restore()
		if f.exitWithParent {
			ctx = command.UntilEOF(ctx, cmd.InOrStdin())
		}
		return f.runLives(ctx, cmd)
	}
	return cmd
}

func (f *agentFlags) add(fs *pflag.FlagSet) {
	f.trainFlags.add(fs, "run folder; the default is runs/ and the name of the run")
	fs.StringVar(&f.run, "run", "fspda", "name of the run: agents connect only to agents of the same run")
	fs.IntVar(&f.rank, "rank", -1, "rank of this agent, from 0")
	f.connection.add(fs)
	addTimeout(fs, &f.timeout,
		"; without this flag an agent that has no checkpoint waits 10 minutes for others to appear")
	fs.BoolVar(&f.mustResume, "resume", false, "end with an error if this agent has no checkpoint to resume from; "+
		"without it such an agent starts at iteration 0")
	fs.BoolVar(&f.exitWithParent, "exit-with-parent", false, "stop when the standard input ends")
	_ = fs.MarkHidden("exit-with-parent") // used by fspda up
}

func addTimeout(fs *pflag.FlagSet, to *time.Duration, more string) {
	fs.DurationVar(to, "timeout", 30*time.Minute, "how long an agent that this one has to wait for may be silent, "+
		"or not advance, before this one ends with an error; 0 is for ever"+more)
}

// firstTimeout is how long an agent that begins waits for others to appear, unless --timeout is
// given: an address may be wrong. An agent that is started again waits for the whole timeout, since
// the others may be under repair.
const firstTimeout = 10 * time.Minute

// checkTimeout checks the flag --timeout: a busy process may be silent for seconds.
func checkTimeout(d time.Duration) error {
	if d != 0 && d < 10*time.Second {
		return command.UsageErrorf("--timeout %v: write 0, for ever, or a duration from 10s on, as 30m", d)
	}
	return nil
}

// oneAgent is the mode of fspda agent: this process holds one agent of the run.
type oneAgent struct {
	agentFlags
	life  int  // The number of agents that the slot has had before; -1: as the folder says.
	moved bool // The process begins again because another one writes the run folder from now on.
}

func (m *oneAgent) configure(fs *pflag.FlagSet) (train.Config, error) {
	c, err := m.config(fs)
	if err != nil {
		return c, err
	}
	env, err := ReadLauncherEnv(os.Getenv)
	if fs.Changed("rank") && (err != nil || env.Rank != m.rank) {
		// The environment describes another process, such as the shell.
		env = LauncherEnv{Master: env.Master}
	} else if err != nil {
		return c, err
	}
	if !fs.Changed("rank") {
		m.rank = env.Rank
	}
	if env.Size > 0 && !fs.Changed("agents") {
		said, err := setup.Agents(m.file)
		if err != nil {
			return c, err
		}
		if said != 0 && said != env.Size && fs.Changed("rank") {
			env.Size = said
		}
		if said != 0 && said != env.Size {
			return c, &train.ConfigError{Key: "agents", Got: strconv.Itoa(said),
				Want: fmt.Sprintf("the environment (%s) says %d: start as many processes as the configuration has "+
					"agents", env.Names, env.Size)}
		}
		c.Agents = env.Size
	}
	if err := errors.Join(m.joinMaster(env.Master), c.Check()); err != nil {
		return c, err
	}
	if m.rank < 0 && !fs.Changed("rank") {
		return c, command.UsageErrorf("--rank is missing: give the rank of this agent, from 0 to %d, or set RANK",
			c.Agents-1)
	}
	if m.rank < 0 || m.rank >= c.Agents {
		return c, command.UsageErrorf("--rank %d: expected a rank from 0 to %d, since the run has %d agents", m.rank,
			c.Agents-1, c.Agents)
	}
	m.patient = fs.Changed("timeout")
	m.out = cmp.Or(m.out, filepath.Join(command.RunsDir, m.run))
	if err := checkTimeout(m.timeout); err != nil {
		return c, err
	}
	m.connection.elastic = c.Elastic()
	return c, m.connection.check(m.run, m.rank, c.Agents)
}

// joinMaster takes the address of agent 0 from the environment, if no flag says where the others
// are.
func (m *oneAgent) joinMaster(address string) error {
	if address == "" || len(m.join) > 0 || m.cluster != "" || m.peers != "" {
		return nil
	}
	if _, _, err := discover.HostPort(address); err != nil {
		return command.UsageErrorf("the environment says MASTER_ADDR and MASTER_PORT are %q: expected a host and a "+
			"port, or give the address of agent 0 with --join", address)
	}
	m.join = []string{address}
	return nil
}

func (m *oneAgent) openDevices(c train.Config) (*setup.Devices, error) {
	return setup.OpenAgentDevice(c, max(1, cmp.Or(c.Threads, cgroup.Processors())), m.rank)
}

func (m *oneAgent) resolve(c train.Config, set *data.Set, dev *setup.Devices) (*train.Setup, setup.Model, error) {
	return setup.ResolveAgent(c, set, dev.Device)
}

func (m *oneAgent) attach(ctx context.Context, r *run) (context.Context, error) {
	live := train.NewLiveState(r.setup.Config.Agents)
	r.options.Live = live
	log := withIteration(r.display.log, live, m.rank).With(zap.String("run", m.run), zap.Int("rank", m.rank))
	r.display.log = log
	metrics, err := openMetrics(m.metrics, m.run, strconv.Itoa(m.rank))
	if err != nil {
		return ctx, err
	}
	r.onClose(metrics.close)
	if err := runfolder.CheckAgents(m.out); err != nil {
		return ctx, err
	}
	store, err := runfolder.OpenAgentStore(m.out, m.rank)
	if err != nil {
		return ctx, err
	}
	r.onClose(func() { _ = store.Close() })
	if m.mustResume && store.Empty() {
		return ctx, &train.FolderError{Path: store.Path, Got: "has no checkpoint to resume from",
			Hint: "restore the folder from a copy, or leave --resume out to start at iteration 0"}
	}
	if m.writer(r.setup, store) == m.rank {
		path, err := m.openFolder(ctx, r)
		if err != nil {
			return ctx, err
		}
		r.announce(path)
	}
	node, address, err := m.connect(r)
	if err != nil {
		return ctx, err
	}
	r.onClose(node.Close)
	need := memory.OneAgent(r.setup, r.devices.Device, r.options.Folder != nil)
	about := []zap.Field{zap.String("listens", address), zap.Int("agents", r.setup.Config.Agents),
		zap.String("memory", command.Bytes(need))}
	if len(m.join) > 0 { // the others join agent 0
		about = append(about, zap.Strings("joins", m.join))
	}
	log.Info("agent", about...)
	r.options.Process = &train.Process{Rank: m.rank, Network: node, Store: store, Timeout: m.timeout,
		Abandon: func(err error) { r.hung <- err }}
	var members awaited
	if r.options.Process.Elastic, members, err = m.agree(r, node, store.Path); err != nil {
		return ctx, err
	}
	metrics.serve(oneProcess{live: live, node: node, rank: m.rank, iterations: r.setup.Config.Iterations,
		awaited: members}, log)
	r.observe(metrics)
	if store.Empty() && !m.patient {
		r.options.Process.FirstTimeout = firstTimeout
	}
	return ctx, nil
}

// conclude reports how the run ended. Agent 0 also prints its results.
func (m *oneAgent) conclude(r *run, res *train.Result) error {
	switch {
	case res.Status == train.Stopped:
		r.display.log.Warn("stopped; the same command resumes")
		return command.ErrStopped
	case r.options.Folder != nil:
		return printResults(r, res)
	case res.Diverged != nil:
		return res.Diverged
	}
	r.display.log.Info("the run is over", zap.String("status", string(res.Status)), zap.Int("iteration", res.Iteration))
	return nil
}

// connect joins the network of the run's agents. It also returns the address where others find this
// agent, if there is one.
func (m *oneAgent) connect(r *run) (*link.Node, string, error) {
	s, all := r.setup, r.display.log
	// after its last iteration others end their connections
	working := zap.LevelEnablerFunc(func(l zapcore.Level) bool {
		return all.Core().Enabled(l) &&
			(l > zap.InfoLevel || r.options.Live.Agents(nil)[m.rank].Iteration < s.Config.Iterations)
	})
	log := all.WithOptions(zap.IncreaseLevel(working))
	digest, err := setup.Arithmetic(s)
	if err != nil {
		return nil, "", err
	}
	found, address, err := m.discover(nats.Options{Run: m.run, Self: m.rank, Agents: s.Config.Agents, Log: log})
	if err != nil {
		return nil, "", portTaken(err)
	}
	o := link.Options{Run: m.run, Self: m.rank, Agents: s.Config.Agents, Pool: dist.NewPool(r.devices.Device),
		Dim: s.Dim, Codec: s.Codec(), Wire: dist.ValueFormat(s.Config.Wire), Durable: true,
		Compression: m.compression, TLS: m.tls, Discovery: found, Listen: m.direct, Advertise: m.directHost(), Log: log,
		Links: link.Links{Near: s.Partners(m.rank), Life: m.life, Tree: m.cluster == "" && m.peers == ""}}
	if s.DropsSilent() { // All members agree on changes, and hear each other.
		o.Near, o.Tree = nil, false
	}
	if drop := s.Config.DropAfter; drop > 0 { // Silence is measured in shorter times.
		o.Pause = min(5*time.Second, time.Duration(drop*float64(time.Second))/4)
	}
	o.Identity = []link.Field{{Name: "run", Value: m.run}, {Name: "protocol", Value: strconv.Itoa(discover.Version)},
		{Name: "arithmetic", Value: digest}}
	for _, id := range s.Identity(r.model.Describe().Sizes()) {
		o.Identity = append(o.Identity, link.Field{Name: id[0], Value: id[1]})
	}
	if s.Config.Precision == "bf16" {
		o.Identity = append(o.Identity, link.Field{Name: "sums in bf16", Value: r.devices.BF16Sums()})
	}
	if s.Config.Model == model.ExternalName { // each agent asks a program of its own for the first model
		o.Identity = append(o.Identity, link.Field{Name: "first model", Value: firstModel(r.model, s.Config.Seed)})
	}
	n, err := link.Open(o)
	return n, address, portTaken(err)
}

// firstModel returns a hash of the model that the agents of a run start from.
func firstModel(m train.Model, seed uint64) string {
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, m.Init(seed)) // a hash takes all
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// portTaken makes an error about a port in use one of bad input, since another port can be given.
func portTaken(err error) error {
	if err != nil && strings.Contains(err.Error(), "port taken") {
		return command.UsageErrorf("%v", err)
	}
	return err
}
