package docscmd

import (
	"bytes"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"fspda/web"
)

var update = flag.Bool("update", false, "write the pictures of the manual anew")

// recursion is a step of all agents, with the gradients at x and the agents of the active edge.
type recursion func(s *quadratics, g [][]float64, i, j int)

// quadratics is the problem, agent i has f_i(x) = c_i/2·|x - a_i|², and the state of a method on
// it.
type quadratics struct {
	curvature              []float64
	centre, x, lambda      [][]float64 // by agent
	before, momentum, dual [][]float64 // x of the iteration before; mg, and mc = ml
	started                bool
}

// The step sizes of all curves, and a of FSPDA-STORM.
const alpha, eta, gamma, beta, newest = 0.05, 0.02, 0.5, 1.0, 0.02

const (
	agents, dims = 5, 4
	iterations   = 6000
)

func matrix(fill func() float64) [][]float64 {
	m := make([][]float64, agents)
	for i := range m {
		m[i] = make([]float64, dims)
		for k := range m[i] {
			m[i][k] = fill()
		}
	}
	return m
}

func zero() float64 { return 0 }

// difference is own - neighbour of agent n in coordinate k of x; 0 without an active edge.
func difference(x [][]float64, n, k, i, j int) float64 {
	switch n {
	case i:
		return x[i][k] - x[j][k]
	case j:
		return x[j][k] - x[i][k]
	}
	return 0
}

// sa is FSPDA-SA whose dual moves by sign·(own - neighbour). The paper's equation 8b prints the
// sign -1. The gossip of equation 8a is printed as it is here.
func sa(sign float64) recursion {
	return func(s *quadratics, g [][]float64, i, j int) {
		next := matrix(zero)
		for n := range agents {
			for k := range dims {
				d := difference(s.x, n, k, i, j)
				next[n][k] = s.x[n][k] - alpha*g[n][k] - eta*s.lambda[n][k] - gamma*d
				s.lambda[n][k] += sign * beta * d
			}
		}
		s.x = next
	}
}

// storm is FSPDA-STORM with mg = g + (1-a)·(mg - sign·old gradient). The paper's equation 10c
// prints the sign -1.
func storm(sign float64) recursion {
	return func(s *quadratics, g [][]float64, i, j int) {
		next := matrix(zero)
		for n := range agents {
			for k := range dims {
				d := difference(s.x, n, k, i, j)
				if s.started {
					old := s.curvature[n] * (s.before[n][k] - s.centre[n][k])
					s.momentum[n][k] = g[n][k] + (1-newest)*(s.momentum[n][k]-sign*old)
					s.dual[n][k] = d + (1-newest)*(s.dual[n][k]-difference(s.before, n, k, i, j))
				} else {
					s.momentum[n][k], s.dual[n][k] = g[n][k], d
				}
				next[n][k] = s.x[n][k] - alpha*s.momentum[n][k] - gamma*s.dual[n][k] - eta*s.lambda[n][k]
				s.lambda[n][k] += beta * s.dual[n][k]
			}
		}
		s.before, s.x, s.started = s.x, next, true
	}
}

// run returns the squared distance of the agents to the optimum, until it passes 1e12.
func run(step recursion) (at, distance []float64) {
	r := rand.New(rand.NewPCG(1, 2))
	s := &quadratics{centre: matrix(r.NormFloat64), x: matrix(zero), lambda: matrix(zero), momentum: matrix(zero),
		dual: matrix(zero)}
	best, sum := make([]float64, dims), 0.0
	for i := range agents {
		s.curvature = append(s.curvature, 0.5+r.Float64())
		sum += s.curvature[i]
		for k := range dims {
			best[k] += s.curvature[i] * s.centre[i][k]
		}
	}
	g := matrix(zero)
	for t := range iterations + 1 {
		total := 0.0
		for i := range agents {
			for k := range dims {
				d := s.x[i][k] - best[k]/sum
				total += d * d
				g[i][k] = s.curvature[i] * (s.x[i][k] - s.centre[i][k])
			}
		}
		if t%50 == 0 || total > 1e12 {
			at, distance = append(at, float64(t)), append(distance, math.Max(total, 1e-20))
		}
		if total > 1e12 {
			break
		}
		i := r.IntN(agents)
		step(s, g, i, (i+1+r.IntN(agents-1))%agents)
	}
	return at, distance
}

// The printed sign of the dual and the printed sign of the old gradient diverge, the corrected ones
// converge. The picture of the manual shows these very curves.
func TestPrintedRecursionsDiverge(t *testing.T) {
	c := &web.Comparison{Title: "Distance to the optimum: as printed, and as corrected", Across: 1,
		Panels: []web.Panel{{Column: "squared distance to the optimum", X: "iteration", Log: true}}}
	for _, r := range []struct {
		name     string
		step     recursion
		diverges bool
	}{{"FSPDA-SA", sa(1), false}, {"FSPDA-SA, printed sign of the dual", sa(-1), true},
		{"FSPDA-STORM", storm(1), false}, {"FSPDA-STORM, printed sign of the old gradient", storm(-1), true}} {
		at, distance := run(r.step)
		if last := distance[len(distance)-1]; r.diverges != (last > 1e12) || !r.diverges && last > 1e-6 {
			t.Errorf("%s ends at %g after %g iterations", r.name, last, at[len(at)-1])
		}
		c.Curves = append(c.Curves, web.Curve{Name: r.name, Columns: map[string][]float64{"iteration": at,
			"squared distance to the optimum": distance}})
	}
	made, kept := filepath.Join(t.TempDir(), "printed"), filepath.Join("..", "..", "docs", "images", "printed")
	if *update {
		made = kept
	}
	c.Layout.Formats = []string{"svg"}
	if err := c.WriteImages(made); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(made + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	if want, err := os.ReadFile(kept + ".svg"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/images/printed.svg is not what the test draws: go test -run TestPrinted ./cli/docscmd "+
			"-update (%v)", err)
	}
}
