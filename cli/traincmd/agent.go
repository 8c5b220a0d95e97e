package traincmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/device"
	"fspda/dist"
	"fspda/dist/nats"
	"fspda/model"
	"fspda/train"
)

// agentFlags are what is said of one agent's process besides the run's Config.
type agentFlags struct {
	trainFlags
	run       string
	rank      int
	join      []string
	listen    string
	advertise string
	cluster   string
	creds     string
	certs     string
	insecure  bool
	packing   string
	direct    string
	metrics   string
	leash     bool
	weather   string

	pack nats.Compression
	tls  nats.Credentials
}

func newAgent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run one agent; the others run in other processes or on other machines",
		Long: `Run one agent of a run whose others are other processes, here or on other machines.

All agents are given the same configuration and their rank, 0 to agents-1. Agent 0 listens at the address of --join; the others find it
there, and each other through it. Agent 0 also evaluates and writes the run folder; the others keep their own checkpoints in theirs. An agent
that ends for any reason is started again with the same command: it goes on from its checkpoint, and the run is the one that it
would have been.

Rank, number of agents and address may also come from the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT; SLURM_PROCID and
SLURM_NTASKS; OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE. Flags win.

Machines prove to each other who they are by certificates, which "fspda certs" makes. Without them, --insecure, agents meet on one machine
only.`,
		Example: `  fspda certs --out certs --run digits -n 4
  fspda agent -c run.yaml --join 10.0.0.1:4700 --rank 2 --run digits --certs certs
  fspda agent -c run.yaml --join 127.0.0.1:4700 --rank 0 --insecure
  srun fspda agent -c run.yaml --join $MASTER:4700 --certs certs`,
		Args: command.NoArgs,
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	said := train.Default()
	setup.ConfigFlags(fs, &said)
	fs.StringVarP(&f.file, "config", "c", "", "YAML file of the keys above")
	fs.StringVar(&f.out, "out", "", "run folder; the default is runs/ and the name of the run")
	fs.StringVar(&f.run, "run", "fspda", "name of the run: agents of another name do not meet")
	fs.IntVar(&f.rank, "rank", -1, "which agent this is, from 0")
	fs.StringSliceVar(&f.join, "join", nil, "HOST:PORT of agent 0, or of any others")
	fs.StringVar(&f.listen, "listen", "",
		"HOST:PORT where others find this agent; the default is the port of --join for agent 0 and any port for others")
	fs.StringVar(&f.advertise, "advertise", "", "HOST:PORT that others are told, where that is not --listen")
	fs.StringVar(&f.cluster, "nats", "", "URL of a NATS cluster that is there already, in place of --join and --listen")
	fs.StringVar(&f.creds, "nats-creds", "", "credentials file for that cluster (nkey and JWT)")
	fs.StringVar(&f.certs, "certs", "", "folder of the certificates that fspda certs made")
	fs.BoolVar(&f.insecure, "insecure", false, "no certificates: on one machine only")
	fs.StringVar(&f.packing, "packing", "none", "lossless compression of messages: none, s2 or zstd")
	fs.StringVar(&f.direct, "direct", "auto",
		"HOST:PORT where others bring messages above 1 MB by a gRPC stream; auto is any free port beside --listen, off sends all over NATS")
	fs.StringVar(&f.metrics, "metrics-listen", "",
		"HOST:PORT, as 127.0.0.1:9100, for Prometheus (/metrics) and probes (/healthz, /readyz)")
	fs.BoolVar(&f.quiet, "quiet", false, "print errors only")
	fs.BoolVar(&f.json, "json", false, "log JSON lines and print the summary as JSON")
	fs.BoolVar(&f.leash, "leash", false, "stop when the standard input ends")
	fs.StringVar(&f.weather, "weather", "", "file of a bad network")
	_ = fs.MarkHidden("leash")   // of fspda up
	_ = fs.MarkHidden("weather") // of tests
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, restore := command.UntilUSR1(cmd.Context())
		defer restore()
		if f.leash {
			ctx = command.UntilEOF(ctx, cmd.InOrStdin())
		}
		return runAgent(ctx, f, fs, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// runAgent is the command: configuration, place, data, network, run.
func runAgent(ctx context.Context, f agentFlags, fs *pflag.FlagSet, stdout, stderr io.Writer) error {
	c, err := f.settle(fs, os.Getenv)
	if err != nil {
		return err
	}
	if c.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.Threads))
	}
	dev, err := setup.OpenAgentDevice(c, max(1, cmp.Or(c.Threads, runtime.NumCPU())), f.rank)
	if err != nil {
		return err
	}
	defer dev.Close()
	set, err := setup.OpenData(c)
	if err != nil {
		return err
	}
	s, m, err := setup.ResolveAgent(c, set, dev.Device)
	if err != nil {
		return err
	}
	show := newShow(f.trainFlags, s, m.Name(), stdout, stderr)
	defer show.close()
	show.engine = dev.String()
	watch := train.NewLiveState(s.Config.Agents)
	show.log = withIteration(show.log, watch, f.rank).With(zap.String("run", f.run), zap.Int("rank", f.rank))
	eye, err := openObservatory(f.metrics, f.run, f.rank)
	if err != nil {
		return err
	}
	defer eye.close()
	home, err := train.OpenHome(f.out, f.rank)
	if err != nil {
		return err
	}
	defer home.Close()
	var folder *train.Folder
	if f.rank == train.Coordinator {
		_, err := train.ReadConfig(f.out)
		if folder, err = train.OpenFolder(f.out, s, err == nil); err != nil {
			return err
		}
		for _, w := range s.Warnings {
			show.log.Warn(w)
		}
		show.begin(f.out)
	}
	node, err := f.open(s, m, dev.Device, show.log)
	if err != nil {
		return err
	}
	defer node.Close()
	eye.begin(watch, node, show.log)
	show.log.Info("agent", zap.String("listens", node.Address()), zap.Strings("joins", f.join),
		zap.Int("agents", c.Agents))
	res, err := train.Run(ctx, s, train.Options{Device: dev.Device, Model: m, Folder: folder, Log: show.log,
		Live: watch, OnRow: show.row, OnStep: show.step,
		Process: &train.Process{Rank: f.rank, Network: node, Store: home}})
	show.close()
	if err != nil {
		return err
	}
	return f.conclude(s, folder, res, dev.Device, show)
}

// conclude ends the process as the run ended. Agent 0 writes what the run leaves behind.
func (f agentFlags) conclude(s *train.Setup, folder *train.Folder, res *train.Result, dev device.Device,
	show *show) error {
	switch {
	case res.Status == train.Stopped:
		show.log.Warn("stopped; the same command goes on")
		return command.ErrStopped
	case folder != nil:
		return conclude(f.trainFlags, s, folder, res, dev, show)
	case res.Diverged != nil:
		return res.Diverged
	}
	show.log.Info("the run is over", zap.String("status", string(res.Status)), zap.Int("iteration", res.Iteration))
	return nil
}

// settle puts file, flags and environment together, and checks what can be checked without data.
func (f *agentFlags) settle(fs *pflag.FlagSet, env func(string) string) (train.Config, error) {
	c, err := f.config(fs)
	if err != nil {
		return c, err
	}
	at, err := ReadLauncherEnv(env)
	if err != nil {
		return c, err
	}
	if f.rank < 0 {
		f.rank = at.Rank
	}
	if at.Size > 0 && !fs.Changed("agents") {
		if c.Agents != train.Default().Agents && c.Agents != at.Size {
			return c, &train.ConfigError{Key: "agents", Got: strconv.Itoa(c.Agents),
				Want: fmt.Sprintf("the environment (%s) says %d: start as many as the configuration has", at.Names,
					at.Size)}
		}
		c.Agents = at.Size
	}
	if len(f.join) == 0 && at.Master != "" {
		f.join = []string{at.Master}
	}
	if err := c.Check(); err != nil {
		return c, err
	}
	if f.rank < 0 || f.rank >= c.Agents {
		return c, command.UsageErrorf("--rank %d: say which of the %d agents this is, from 0 to %d", f.rank,
			c.Agents, c.Agents-1)
	}
	f.out = cmp.Or(f.out, filepath.Join(command.RunsDir, f.run))
	if err := f.meeting(); err != nil {
		return c, err
	}
	return c, f.manners()
}

// manners settles how messages travel.
func (f *agentFlags) manners() (err error) {
	if f.pack, err = nats.ParseCompression(f.packing); err != nil {
		return command.UsageErrorf("%v", err)
	}
	if f.certs != "" {
		if f.tls, err = nats.ReadCredentials(f.certs, f.run, f.rank); err != nil {
			return command.UsageErrorf("%v", err)
		}
	}
	f.tls.File = f.creds
	return f.door()
}

// door settles where large messages come in. Without certificates that is this machine alone.
func (f *agentFlags) door() error {
	switch f.direct {
	case "off":
		f.direct = ""
		return nil
	case "auto":
		f.direct = ""
		if host, _, err := net.SplitHostPort(f.listen); err == nil {
			f.direct = net.JoinHostPort(host, "0")
		} else if f.certs != "" {
			f.direct = "0.0.0.0:0"
		}
		return nil
	}
	host, _, err := net.SplitHostPort(f.direct)
	if err != nil {
		return command.UsageErrorf("--direct %q: write HOST:PORT, auto or off", f.direct)
	}
	if f.certs == "" && !loopback(host) {
		return command.UsageErrorf(
			"--direct %s without --certs: anybody could come there; use 127.0.0.1, --certs, or off", f.direct)
	}
	return nil
}

// doorHost is the host that others are told.
func (f *agentFlags) doorHost() string {
	host, _, _ := net.SplitHostPort(f.advertise)
	return host
}

// meeting settles where the agents meet.
func (f *agentFlags) meeting() error {
	if f.cluster != "" {
		if len(f.join) > 0 || f.listen != "" {
			return command.UsageErrorf("--nats names a cluster that is there: leave --join and --listen out")
		}
		return nil
	}
	if len(f.join) == 0 {
		return command.UsageErrorf("--join: say where agent 0 is, HOST:PORT, or name a NATS cluster with --nats")
	}
	host, port, err := net.SplitHostPort(f.join[0])
	if err != nil {
		return command.UsageErrorf("--join %q: write HOST:PORT", f.join[0])
	}
	any := "0.0.0.0"
	if f.insecure {
		any = host
	}
	if f.rank == train.Coordinator {
		f.listen = cmp.Or(f.listen, net.JoinHostPort(any, port))
		if len(f.join) == 1 {
			f.join = nil // that is this agent
		}
	} else if f.insecure {
		any = "127.0.0.1"
	}
	f.listen = cmp.Or(f.listen, net.JoinHostPort(any, "0"))
	if f.insecure {
		return f.nearby()
	}
	if f.certs == "" {
		return command.UsageErrorf("--certs: name the folder of certificates that fspda certs made; on one machine alone --insecure will do")
	}
	return nil
}

// nearby refuses to do without certificates where others could come by.
func (f *agentFlags) nearby() error {
	for _, a := range append([]string{f.listen}, f.join...) {
		if host, _, err := net.SplitHostPort(a); err != nil || !loopback(host) {
			return command.UsageErrorf(
				"--insecure with %s: without certificates anybody could join there; use 127.0.0.1, or --certs", a)
		}
	}
	return nil
}

// loopback tells whether a host is this machine and reached from nowhere else.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// open joins the network.
func (f *agentFlags) open(s *train.Setup, m *model.Engine, dev device.Device, log *zap.Logger) (*nats.Node, error) {
	o := nats.Options{Run: f.run, Self: f.rank, Agents: s.Config.Agents, Pool: dist.NewPool(dev), Dim: s.Dim,
		Codec: s.Codec(), Wire: dist.ValueFormat(s.Config.Wire), URL: f.cluster,
		Server: nats.Server{Listen: f.listen, Advertise: f.advertise,
			Join: f.join}, Durable: true, Compression: f.pack, Faults: weatherOf(f.weather, f.rank), TLS: f.tls,
		Direct: nats.DirectServer{Listen: f.direct, Advertise: f.doorHost()}, Log: log}
	o.Identity = []nats.Field{{Name: "run", Value: f.run}, {Name: "version", Value: command.Version()}}
	for _, id := range s.Identity(m.Sizes()) {
		o.Identity = append(o.Identity, nats.Field{Name: id[0], Value: id[1]})
	}
	n, err := nats.Open(o)
	if err != nil && strings.Contains(err.Error(), "port taken") {
		return nil, command.UsageErrorf("%v", err)
	}
	return n, err
}
