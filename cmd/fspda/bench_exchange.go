package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cpu"
	"fspda/dist"
	"fspda/dist/nats"
	"fspda/train"
)

// exchangeFlags are what is said of the exchanges to measure.
type exchangeFlags struct {
	bytes []int
	each  time.Duration
	json  bool
}

func newBenchExchange() *cobra.Command {
	var f exchangeFlags
	cmd := &cobra.Command{
		Use:   "exchange",
		Short: "Time of an exchange between two agents, against bare NATS and a bare gRPC stream in the same run",
		Long: `Time of an exchange between two agents of this machine, each with a NATS server of its own, against what NATS and gRPC alone need for
the same bytes. Messages above 1 MB take the direct way; "all over NATS" does without it. Nothing is encrypted.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := f.run(cmd.Context())
			if errors.Is(err, context.Canceled) {
				return errStopped
			}
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			_, err = r.WriteTo(cmd.OutOrStdout())
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.IntSliceVar(&f.bytes, "bytes", []int{32000, 4000000, 40000000}, "sizes of a message, multiples of 4")
	fs.DurationVar(&f.each, "time", 3*time.Second, "how long to measure each size and way")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (f exchangeFlags) run(ctx context.Context) (r bench.ExchangeReport, err error) {
	for _, n := range f.bytes {
		if n < 4 || n%4 != 0 || n > 1<<30 {
			return r, &train.ConfigError{Key: "bytes", Got: fmt.Sprint(n), Want: "expected a multiple of 4 up to 1 GB"}
		}
	}
	if f.each <= 0 {
		return r, &train.ConfigError{Key: "time", Got: f.each.String(), Want: "expected a time above 0, such as 3s"}
	}
	return bench.Exchange(ctx, bench.ExchangeOptions{Sizes: f.bytes, Each: f.each, Wires: []bench.Wire{
		{Name: "agents", Open: func(ctx context.Context, size int) (func() error, func(), error) {
			return openPair(ctx, size/4, nats.Door{Listen: "127.0.0.1:0"})
		}},
		{Name: "agents, all over NATS", Open: func(ctx context.Context, size int) (func() error, func(), error) {
			return openPair(ctx, size/4, nats.Door{})
		}},
		bench.BareNATS(), bench.BareGRPC(), bench.TunedGRPC(),
	}})
}

// pair is two agents that exchange vectors of n numbers.
type pair struct {
	nodes [2]*nats.Node
	pools [2]*dist.Pool
	n, t  int
	other chan error
}

func openPair(ctx context.Context, n int, door nats.Door) (swap func() error, end func(), err error) {
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
	for i := range p.nodes {
		p.pools[i] = dist.NewPool(cpu.New())
		o := nats.Options{Run: "bench", Self: i, Agents: 2, Dim: n, Pool: p.pools[i], Server: nats.Server{Listen: "127.0.0.1:0"}, Door: door}
		if i > 0 {
			o.Server.Join = []string{p.nodes[0].Address()}
		}
		if p.nodes[i], err = nats.Open(o); err == nil {
			err = p.nodes[i].Start(nil, 0)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	for _, node := range p.nodes {
		if err := node.Ready(ctx); err != nil {
			return nil, nil, err
		}
	}
	return func() error { return p.swap(ctx) }, end, nil
}

// swap is one exchange.
func (p *pair) swap(ctx context.Context) error {
	p.t++
	go func() { p.other <- p.play(ctx, 1) }()
	return errors.Join(p.play(ctx, 0), <-p.other)
}

// play is one end of it.
func (p *pair) play(ctx context.Context, self int) error {
	err := p.nodes[self].Send(ctx, dist.Message{T: p.t, From: self, To: 1 - self, Values: []*dist.Buffer{p.pools[self].Get(p.n)}})
	if err != nil {
		return err
	}
	m, err := p.nodes[self].Recv(ctx, self, 1-self, p.t)
	m.Release()
	return err
}
