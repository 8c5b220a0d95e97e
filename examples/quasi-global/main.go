// Command quasi-global is fspda with one more algorithm, --algo quasi-global: everything in this
// file.
//
//	go run . figure -c figure.yaml
//
// compares it with FSPDA-SA and DSGD over three seeds. It has all commands of fspda: go run .
// --help.
package main

import (
	"fspda/cli"
	"fspda/device"
	"fspda/train"
	"fspda/train/algo"
)

// quasiGlobal is DSGD with quasi-global momentum (Lin, Karimireddy, Stich and Jaggi 2021, algorithm
// 1). Its momentum h follows the motion of the averaged models, which is the same direction at
// agents of different data. With gradient g, step alpha and W, the weights of the active edges:
//
//	u = mu·h + g
//	x' = W (x - alpha·u)
//	h ← mu·h + (1-mu)·(x - x')/alpha        x ← x'
//
// With D, the sum of w·(own - other) over the neighbours, x - x' = alpha·u + D, so h needs no copy
// of x. Instead of g it takes the direction of any optimizer, such as AdamW (--optimizer adamw).
type quasiGlobal struct {
	mu float64
	algo.Descent
}

func (quasiGlobal) Name() string { return "quasi-global" }

// Traits say that an agent keeps a momentum between iterations, besides its model, that its
// messages may go over any edges, and that it takes any optimizer.
func (a quasiGlobal) Traits() algo.Traits {
	return algo.Traits{
		Memory:   algo.Memory{Aux: []string{"momentum"}},
		Exchange: algo.Exchange{Edges: algo.AnyEdges},
		Updates:  algo.Updates{Descent: a.Descent, Optimizers: algo.AnyOptimizer},
	}
}

// Local takes the gradient and the agent's own step, and sends where it has come to.
func (a quasiGlobal) Local(s *algo.State, r *algo.Round) error {
	g, err := a.Direction(s, r, r.Alpha, s.X)
	if err != nil {
		return err
	}
	u, h := s.Gradient(), s.Aux[0] // the gradient has been read, and its vector is free
	s.Dev.Do(device.Combine(u, device.Term{A: 1, V: g}, device.Term{A: a.mu, V: h}))
	s.Dev.Do(device.Combine(s.X, device.Term{A: 1, V: s.X}, device.Term{A: -r.Alpha, V: u}))
	s.Dev.Do(device.Combine(h, device.Term{A: a.mu, V: h}, device.Term{A: 1 - a.mu, V: u}))
	s.Send(r, s.X)
	return nil
}

// Mix averages with the neighbours that were heard: x ← x - D and h ← h + (1-mu)/alpha·D.
func (a quasiGlobal) Mix(s *algo.State, r *algo.Round) error {
	s.AddDifferences(r, 0, algo.ActiveWeight, device.Term{A: -1, V: s.X},
		device.Term{A: (1 - a.mu) / r.Alpha, V: s.Aux[0]})
	return nil
}

// method is the algorithm with its setting, which is params.mu in files and sweeps, and --param
// mu=0.8.
var method = train.Method{
	Name: "quasi-global",
	Params: []train.Param{
		{Name: "mu", Default: 0.9, Range: "[0, 1)", Help: "share of the momentum that is kept"}},
	New: func(s algo.Settings) algo.Algorithm { return quasiGlobal{s.Param("mu"), s.Descent} },
}

func main() { cli.Main(cli.Method(method)) }
