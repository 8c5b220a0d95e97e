package algotest

import (
	"fmt"

	"fspda/device"
	"fspda/device/devicetest"
	"fspda/train/algo"
)

const (
	agents = 4
	dim    = 3
	alpha  = 0.1
	eta    = 0.05
)

// ring are the edges of the ring of four agents.
var ring = [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}}

// simulation runs an algorithm in lockstep, without goroutines and transport. Objectives are f_i(x)
// = ½Σ_k h_ik (x_k - b_ik)² with h_ik = 1+((i+2k) mod 3)/2 and b_ik = (i+1) - k/2·(-1)^i; gradients
// have the factor 1+0.1·(-1)^t.
type simulation struct {
	dev   device.Device
	algo  algo.Algorithm
	state []*algo.State

	edges  func(t int) [][2]int // active in iteration t
	masked bool                 // only the coordinates t mod 3 and (t+1) mod 3 are exchanged
	fixed  float64              // weight of every edge in the fixed mixing matrix; 0: none
}

func (g *simulation) begin() {
	for range agents {
		g.state = append(g.state, algo.NewState(g.algo, g.dev, g.dev.NewVector(dim)))
	}
}

// step runs iteration t: every agent's Local, then the exchange, then every agent's Mix.
func (g *simulation) step(t int) error {
	rounds := make([]*algo.Round, agents)
	for i := range rounds {
		rounds[i] = g.round(t, i)
		if err := g.algo.Local(g.state[i], rounds[i]); err != nil {
			return fmt.Errorf("iteration %d, agent %d: %w", t, i, err)
		}
	}
	for i, r := range rounds {
		for k := range r.Links {
			for _, l := range rounds[r.Links[k].Peer].Links {
				if l.Peer == i {
					r.Links[k].Received = l.Sent
				}
			}
		}
	}
	for i, r := range rounds {
		if err := g.algo.Mix(g.state[i], r); err != nil {
			return fmt.Errorf("iteration %d, agent %d: %w", t, i, err)
		}
	}
	return nil
}

func (g *simulation) round(t, i int) *algo.Round {
	r := &algo.Round{T: t, Self: i, Alpha: alpha, Eta: eta, Acquire: g.dev.NewVector}
	r.Grad = func(dst, x device.Vector) error {
		g.write(dst, gradient(t, i, g.read(x)))
		return nil
	}
	r.Post = func(link int, v ...device.Vector) { r.Links[link].Sent = append(r.Links[link].Sent, v...) }
	degree := [agents]int{}
	for _, e := range g.edges(t) {
		degree[e[0]]++
		degree[e[1]]++
	}
	for peer := range agents { // ascending peers
		for _, e := range g.edges(t) {
			if i == peer || e != [2]int{min(i, peer), max(i, peer)} {
				continue
			}
			l := algo.Link{Peer: peer, Initiator: i == e[0], Len: dim,
				ActiveWeight: 1 / float64(1+max(degree[i], degree[peer])), FixedWeight: g.fixed}
			if g.masked {
				a, b := uint32(t%dim), uint32((t+1)%dim)
				l.Mask, l.Len = g.dev.NewIndex([]uint32{min(a, b), max(a, b)}, nil), 2
			}
			r.Links = append(r.Links, l)
		}
	}
	return r
}

// gradient returns the gradient of agent i in iteration t.
func gradient(t, i int, x []float64) []float64 {
	g := make([]float64, dim)
	for k := range g {
		h, b := 1+float64((i+2*k)%3)/2, float64(i+1)-0.5*float64(k)*sign(i)
		g[k] = (1 + 0.1*sign(t)) * h * (x[k] - b)
	}
	return g
}

func sign(t int) float64 {
	if t%2 == 0 {
		return 1
	}
	return -1
}

// read returns the contents of v in full precision.
func (g *simulation) read(v device.Vector) []float64 {
	if v, ok := v.(*devicetest.Vector64); ok {
		return append([]float64(nil), v.Data...)
	}
	host, x := make([]float32, v.Len()), make([]float64, v.Len())
	g.dev.Read(host, v)
	for i, f := range host {
		x[i] = float64(f)
	}
	return x
}

func (g *simulation) write(v device.Vector, x []float64) {
	if v, ok := v.(*devicetest.Vector64); ok {
		copy(v.Data, x)
		return
	}
	host := make([]float32, len(x))
	for i, f := range x {
		host[i] = float32(f)
	}
	g.dev.Write(v, host)
}
