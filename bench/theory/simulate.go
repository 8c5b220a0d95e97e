package theory

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/train/algo"
)

// Settings is one run of an algorithm on a problem.
type Settings struct {
	Problem
	Graph, Edges string  // specs of package dist, such as ring and one-edge
	Density      float64 // share of the coordinates of an exchange; 1: all
	Algorithm    algo.Algorithm
	Alpha, Eta   float64
	Gamma        float64 // if Eta is 0, it is set to critical damping, gamma²·rho_min/4, with beta 1
	Iterations   int
	FirstBatch   float64 // the noise of the first gradient is divided by its root; 0 is 1
	From         float64 // errors are means from this share of the iterations on
	RunSeed      uint64  // seed of edges, masks and noise

	// Central replaces the algorithm by SGD with the mean of the agents' gradients
	Central bool
}

// Result holds the measurements of a run: means over its iterations.
type Result struct {
	GradSq    float64 // |∇F(mean model)|²
	Consensus float64 // Σ_i |x_i - mean model|²
}

// Run runs the algorithm. The result is +Inf if it diverges.
func (c Settings) Run(ctx context.Context) (Result, error) {
	c.prepare()
	if c.Central {
		return c.central(), nil
	}
	c.Eta = cmp.Or(c.Eta, c.Gamma*c.Gamma*c.gap()/4)
	g, err := dist.ParseGraph(c.Graph, c.N, c.Seed)
	if err != nil {
		return Result{}, err
	}
	s := &simulation{Settings: c, dev: devicetest.NewFloat64()}
	if s.process, err = dist.ParseProcess(c.Edges, g, c.RunSeed); err != nil {
		return Result{}, err
	}
	if s.mask, err = dist.ParseMask("randk", c.Density, []int{c.D}, c.RunSeed); err != nil {
		return Result{}, err
	}
	for range c.N {
		s.state = append(s.state, algo.NewState(c.Algorithm, s.dev, s.dev.NewVector(c.D)))
		s.rounds = append(s.rounds, s.newRound(len(s.rounds)))
	}
	var sum Result
	mean, counted := make([]float64, c.D), 0
	for t := range c.Iterations {
		if t%1024 == 0 && ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if c.measured(t) {
			r := s.measure(mean)
			if !(r.GradSq < 1e12) {
				return Result{math.Inf(1), math.Inf(1)}, nil
			}
			sum.GradSq, sum.Consensus, counted = sum.GradSq+r.GradSq, sum.Consensus+r.Consensus, counted+1
		}
		if err := s.step(t); err != nil {
			return Result{}, fmt.Errorf("theory: %s, iteration %d: %w", c.Algorithm.Name(), t, err)
		}
	}
	return Result{sum.GradSq / float64(counted), sum.Consensus / float64(counted)}, nil
}

// maxMeasured limits the iterations of a run whose errors are measured; they are evenly spaced.
const maxMeasured = 4096

// measured reports whether the errors of the models of iteration t count.
func (c *Settings) measured(t int) bool {
	return t%max(1, c.Iterations/maxMeasured) == 0 && float64(t) >= c.From*float64(c.Iterations)
}

// central runs SGD on the mean gradient.
func (c Settings) central() Result {
	x, g, one := make([]float64, c.D), make([]float64, c.D), make([]float64, c.D)
	sum, counted := 0.0, 0
	for t := range c.Iterations {
		if c.measured(t) {
			sum, counted = sum+c.stationarity(x), counted+1
		}
		clear(g)
		for i := range c.N {
			c.noisy(one, c.RunSeed, t, i, x, c.Noise)
			for k, v := range one {
				g[k] += v / float64(c.N)
			}
		}
		for k := range x {
			x[k] -= c.Alpha * g[k]
		}
	}
	return Result{GradSq: sum / float64(counted)}
}

// simulation runs the agents in lockstep, without goroutines and transport.
type simulation struct {
	Settings
	dev     device.Device
	process dist.Process
	mask    dist.Mask
	state   []*algo.State
	rounds  []*algo.Round
	events  []dist.Event
	coords  []uint32
}

func data(v device.Vector) []float64 { return v.(*devicetest.Vector64).Data }

// newRound makes the round that agent i uses in all iterations.
func (s *simulation) newRound(i int) *algo.Round {
	r := &algo.Round{Self: i, Alpha: s.Alpha, Eta: s.Eta, Acquire: s.dev.NewVector}
	r.Grad = func(dst, x device.Vector) error {
		noise := s.Noise
		if r.T == 0 && s.FirstBatch > 1 {
			noise /= math.Sqrt(s.FirstBatch)
		}
		s.noisy(data(dst), s.RunSeed, r.T, i, data(x), noise)
		return nil
	}
	r.Post = func(link int, v ...device.Vector) { r.Links[link].Sent = append(r.Links[link].Sent, v...) }
	return r
}

// step runs iteration t: every agent's Local, then the exchange, then every agent's Mix.
func (s *simulation) step(t int) error {
	for _, r := range s.rounds {
		r.T, r.Links = t, r.Links[:0]
	}
	s.events = s.process.Active(s.events, t)
	for _, e := range s.events {
		l := algo.Link{Len: s.D}
		if !s.mask.Dense() {
			s.coords = s.mask.Draw(s.coords, t, e.From, e.To)
			l.Mask, l.Len = s.dev.NewIndex(s.coords, nil), len(s.coords)
		}
		from, to := l, l
		from.Peer, from.Initiator, to.Peer = e.To, true, e.From
		s.rounds[e.From].Links = append(s.rounds[e.From].Links, from)
		s.rounds[e.To].Links = append(s.rounds[e.To].Links, to)
	}
	for i, r := range s.rounds {
		if err := s.Algorithm.Local(s.state[i], r); err != nil {
			return err
		}
	}
	for i, r := range s.rounds {
		for k := range r.Links {
			for _, l := range s.rounds[r.Links[k].Peer].Links {
				if l.Peer == i {
					r.Links[k].Received = l.Sent
				}
			}
		}
	}
	for i, r := range s.rounds {
		if err := s.Algorithm.Mix(s.state[i], r); err != nil {
			return err
		}
	}
	return nil
}

// measure returns the errors of the current models. mean is working memory.
func (s *simulation) measure(mean []float64) (r Result) {
	clear(mean)
	for _, a := range s.state {
		for k, v := range data(a.X) {
			mean[k] += v / float64(s.N)
		}
	}
	for _, a := range s.state {
		for k, v := range data(a.X) {
			r.Consensus += (v - mean[k]) * (v - mean[k])
		}
	}
	r.GradSq = s.stationarity(mean)
	return r
}
