package benchcmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench/measure"
	"fspda/bench/measure/bare"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/cpu"
	"fspda/dist"
	"fspda/dist/discover/nats"
	"fspda/dist/link"
	"fspda/model"
	"fspda/train"
	"fspda/train/config"
)

type exchangeFlags struct {
	bytes  []int
	each   time.Duration
	loaded bool
	batch  int

	progress io.Writer

	end, join string // set in the other process
}

func newBenchExchange() *cobra.Command {
	var f exchangeFlags
	cmd := &cobra.Command{
		Use:   "exchange",
		Short: "Time of an exchange between two agents, compared with plain NATS and a plain gRPC stream",
		Long: `Time of an exchange between two agents of this machine, each with a NATS server of its own, compared with
what NATS and gRPC alone need for the same bytes: both ends in this process, one of them in another process, and
over TLS with certificates of a run; "relayed by NATS" is the way of agents that cannot reach each other directly.

--beside measures by how much the gradient of ResNet-50, on one core, is slower while a tenth of its parameters is
exchanged with an agent in another process.`,
	}
	command.Report(cmd, func(ctx context.Context) (fmt.Stringer, error) {
		return f.measure(ctx, cmd.Flags().Changed("bytes"))
	})
	report := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f.progress = cmd.ErrOrStderr()
		if f.end != "" {
			return f.serve(command.UntilEOF(cmd.Context(), cmd.InOrStdin()), cmd.OutOrStdout())
		}
		return report(cmd, args)
	}
	fs := cmd.Flags()
	fs.IntSliceVar(&f.bytes, "bytes", []int{32000, 4000000, 16000000, 40000000}, "sizes of a message, multiples of 4")
	fs.DurationVar(&f.each, "time", 3*time.Second,
		"how long to measure each size and transport; with --beside, everything")
	fs.BoolVar(&f.loaded, "beside", false,
		"measure the gradient of ResNet-50 during exchanges; --bytes is then a tenth of its parameters by default")
	fs.IntVar(&f.batch, "batch", 4, "images of that gradient")
	fs.StringVar(&f.end, "end", "", "be the other end: agents or grpc")
	fs.StringVar(&f.join, "join", "", "address of the first agent")
	_ = fs.MarkHidden("end") // used by this command itself
	_ = fs.MarkHidden("join")
	return cmd
}

func (f exchangeFlags) measure(ctx context.Context, sized bool) (fmt.Stringer, error) {
	for _, n := range f.bytes {
		if n < 4 || n%4 != 0 || n > 1<<30 {
			return nil, config.Invalid("bytes", n, "expected a multiple of 4 up to 1 GB")
		}
	}
	if f.each <= 0 {
		return nil, config.Invalid("time", f.each, "expected a time above 0, such as 3s")
	}
	if f.batch < 1 {
		return nil, config.Invalid("batch", f.batch, "expected at least 1")
	}
	if !f.loaded {
		return f.measureTransports(ctx)
	}
	if !sized {
		f.bytes = nil
	}
	return f.measureSlowdown(ctx)
}

// measureTransports measures an exchange over every transport.
func (f exchangeFlags) measureTransports(ctx context.Context) (r measure.ExchangeReport, err error) {
	dir, err := os.MkdirTemp("", "fspda-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	if err := link.WriteCredentials(dir, benchRun, 2, time.Hour); err != nil {
		return r, err
	}
	var withTLS [2]link.Credentials
	for i := range withTLS {
		if withTLS[i], err = link.ReadCredentials(dir, benchRun, i); err != nil {
			return r, err
		}
	}
	local := func(name, listen string, as [2]link.Credentials) measure.Wire {
		return measure.Wire{Name: name, Open: func(ctx context.Context, size int) (func() error, func(), error) {
			return openPair(ctx, size/4, listen, as)
		}}
	}
	report := func(rows []measure.ExchangeRow) {
		fmt.Fprintf(f.progress, "%d bytes: %.0f µs between agents, %d ways measured\n", rows[0].Bytes, rows[0].Median,
			len(rows))
	}
	return measure.Exchange(ctx, measure.ExchangeOptions{Sizes: f.bytes, Each: f.each, Progress: report,
		Wires: []measure.Wire{
			local("agents", anyPort, [2]link.Credentials{}),
			local("agents, relayed by NATS", "", [2]link.Credentials{}),
			bare.NATS(), bare.GRPC(), bare.TunedGRPC(),
			{Name: "agents, two processes", Open: openRemotePair}, bare.RemoteGRPC(startGRPC),
			local("agents, TLS", anyPort, withTLS), bare.SecureNATS([2]*tls.Config{withTLS[0].Agents,
				withTLS[1].Agents}), bare.SecureGRPC(withTLS[0].Agents, withTLS[1].Agents),
		}})
}

// measureSlowdown measures how much exchanges slow the gradient of ResNet-50 down.
func (f exchangeFlags) measureSlowdown(ctx context.Context) (r measure.OverheadReport, err error) {
	c := train.Default()
	c.Model = "resnet50"
	net, err := setup.OpenModel(c, []int{224, 224, 3}, 1000)
	if err != nil {
		return r, err
	}
	plan, err := net.Plan(f.batch, model.Train)
	if err != nil {
		return r, &train.ConfigError{Key: "batch", Got: fmt.Sprint(f.batch), Err: err}
	}
	dev := cpu.New(cpu.Threads(1))
	defer dev.Close()
	gradient, err := gradientOf(net, dev, plan.Code())()
	if err != nil {
		return r, err
	}
	size := 4 * (net.Dim() / 10)
	if len(f.bytes) > 0 {
		size = f.bytes[0]
	}
	exchangeOnce, end, err := openRemotePair(ctx, size)
	if err != nil {
		return r, err
	}
	defer end()
	return measure.Overhead(ctx,
		measure.OverheadOptions{What: fmt.Sprintf("the gradient of %s over %d images", net.Name(), f.batch),
			Bytes: size, Each: f.each, Exchange: exchangeOnce,
			Gradient: func() error { _, err := gradient(); return err }})
}

// benchRun is the name of the run of the two agents.
const benchRun = "bench"

// pair is two agents that exchange vectors of n numbers.
type pair struct {
	nodes [2]*link.Node
	pools [2]*dist.Pool
	n, t  int
	other chan error
}

func openPair(ctx context.Context, n int, listen string, as [2]link.Credentials) (exchangeOnce func() error,
	end func(), err error) {
	p := &pair{n: n, other: make(chan error, 1)}
	end = func() {
		for _, node := range p.nodes {
			if node != nil {
				node.Close()
			}
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	var join []string
	for i := range p.nodes {
		var address string
		p.pools[i] = dist.NewPool(cpu.New())
		p.nodes[i], address, err = openAgent(i, n, p.pools[i], agentOptions{join, listen, as[i]})
		if err != nil {
			return nil, nil, err
		}
		join = append(join, address)
	}
	for _, node := range p.nodes {
		if err := node.Ready(ctx); err != nil {
			return nil, nil, err
		}
	}
	return func() error { return p.exchange(ctx) }, end, nil
}

// exchange is one exchange, seen from both ends.
func (p *pair) exchange(ctx context.Context) error {
	p.t++
	go func() { p.other <- exchange(ctx, p.nodes[1], p.pools[1], 1, p.n, p.t) }()
	return errors.Join(exchange(ctx, p.nodes[0], p.pools[0], 0, p.n, p.t), <-p.other)
}

// anyPort is any free port of this machine.
const anyPort = "127.0.0.1:0"

// agentOptions says how an agent reaches the other one.
type agentOptions struct {
	join   []string // The addresses of NATS servers.
	listen string   // The address where the other agent connects; empty: NATS relays the connection.
	tls    link.Credentials
}

// openAgent opens and starts one of two agents, and returns the address of its NATS server.
func openAgent(self, n int, pool *dist.Pool, o agentOptions) (node *link.Node, address string, err error) {
	found, err := nats.Open(nats.Options{Run: benchRun, Self: self, Agents: 2, TLS: o.tls.Agents,
		Server: nats.Server{Listen: anyPort, Join: o.join}})
	if err != nil {
		return nil, "", err
	}
	node, err = link.Open(link.Options{Run: benchRun, Self: self, Agents: 2, Dim: n, Pool: pool, Discovery: found,
		Listen: o.listen, TLS: o.tls})
	if err != nil {
		return nil, "", err
	}
	if err := node.Start(nil, 0); err != nil {
		node.Close()
		return nil, "", err
	}
	return node, found.Address(), nil
}

// exchange sends n numbers to the other agent and receives its numbers.
func exchange(ctx context.Context, node *link.Node, pool *dist.Pool, self, n, t int) error {
	err := node.Send(ctx, dist.Message{T: t, From: self, To: 1 - self, Values: []*dist.Buffer{pool.Get(n)}})
	if err != nil {
		return err
	}
	m, err := node.Recv(ctx, self, 1-self, t)
	m.Release()
	return err
}
