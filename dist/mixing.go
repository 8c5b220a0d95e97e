package dist

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Mixing is a mixing matrix W on a graph: symmetric, rows that sum to 1, and zero where there is no
// edge. An agent's average is (Wx)_i = Σ_j w_ij x_j, j = i included. It is immutable.
type Mixing struct {
	g    *Graph
	spec string
	edge []float64 // weight of each edge
	self []float64 // diagonal
}

// mixingKind is a row of the table of mixing matrices.
type mixingKind struct {
	Form
	// weights returns the weight of each edge of g.
	weights func(p Spec, g *Graph) (func(e Edge) float64, error)
}

// mixingKinds is the table of mixing matrices, half-lazy apart, which reads the table.
var mixingKinds = []mixingKind{
	{Form{Name: "metropolis", Meaning: "1/(1+max(deg_i,deg_j)) on an edge, the rest of the row on the diagonal"},
		metropolis(1)},
	{Form{Name: "lazy-metropolis", Meaning: "half of that on an edge"}, metropolis(0.5)},
	{Form{Name: "laplacian", Args: []Arg{Number("theta")}, Meaning: "theta on an edge: W = I - theta·(D-A)"},
		func(p Spec, _ *Graph) (func(Edge) float64, error) {
			return func(Edge) float64 { return p.Numbers[0] }, nil
		}},
	{Form{Name: "uniform", Meaning: "1/n everywhere; on the complete graph only"},
		func(p Spec, g *Graph) (func(Edge) float64, error) {
			if len(g.Edges) != g.N*(g.N-1)/2 {
				return nil, p.Errorf("the graph %s of %d agents is not complete; take metropolis", g, g.N)
			}
			return func(Edge) float64 { return 1 / float64(g.N) }, nil
		}},
	{Form{Name: "half-lazy", Args: []Arg{textArg("SPEC")}, Meaning: "(I+W)/2 with another of these as W"}, nil},
}

func metropolis(scale float64) func(Spec, *Graph) (func(Edge) float64, error) {
	return func(_ Spec, g *Graph) (func(Edge) float64, error) {
		return func(e Edge) float64 { return scale / float64(1+max(g.Degree(e.I), g.Degree(e.J))) }, nil
	}
}

// ParseMixing returns the mixing matrix on g that spec names, checked by [CheckMixing]. The error
// for an unknown spec lists all spellings.
func ParseMixing(spec string, g *Graph) (*Mixing, error) {
	p, kind, err := readSpec("mixing matrix", spec, mixingKinds)
	if err != nil {
		return nil, err
	}
	if kind.weights == nil {
		w, err := ParseMixing(p.Texts[0], g)
		if err != nil {
			return nil, err
		}
		return newMixing(g, "half-lazy("+w.spec+")", func(e Edge) float64 { return w.At(e.I, e.J) / 2 }), nil
	}
	weight, err := kind.weights(p, g)
	if err != nil {
		return nil, err
	}
	w := newMixing(g, p.String(), weight)
	if err := w.Check(); err != nil {
		return nil, p.Errorf("on the graph %s: %v", g, err)
	}
	return w, nil
}

// newMixing sets the weight of each edge, and each diagonal element such that its row sums to 1.
func newMixing(g *Graph, spec string, weight func(Edge) float64) *Mixing {
	w := &Mixing{g: g, spec: spec, edge: make([]float64, len(g.Edges)), self: make([]float64, g.N)}
	for k, e := range g.Edges {
		w.edge[k] = weight(e)
	}
	for i := range w.self {
		sum := 0.0
		for _, k := range g.Incident(i) {
			sum += w.edge[k]
		}
		w.self[i] = 1 - sum
		// a row whose edges sum to 1, up to rounding
		if math.Abs(w.self[i]) < 1e-15*float64(1+g.Degree(i)) {
			w.self[i] = 0
		}
	}
	return w
}

// String returns the spec from which [ParseMixing] makes this matrix.
func (w *Mixing) String() string { return w.spec }

// Self returns the weight w_ii of agent i's own vector.
func (w *Mixing) Self(i int) float64 { return w.self[i] }

// Edge returns the weight of the edge with number k, for both ends.
func (w *Mixing) Edge(k int) float64 { return w.edge[k] }

// At returns w_ij.
func (w *Mixing) At(i, j int) float64 {
	if i == j {
		return w.self[i]
	}
	if k, ok := w.g.EdgeIndex(i, j); ok {
		return w.edge[k]
	}
	return 0
}

// Matrix returns W as an N×N matrix.
func (w *Mixing) Matrix() *mat.SymDense {
	m := mat.NewSymDense(w.g.N, nil)
	for i, v := range w.self {
		m.SetSym(i, i, v)
	}
	for k, e := range w.g.Edges {
		m.SetSym(e.I, e.J, w.edge[k])
	}
	return m
}

// Spectrum returns the N eigenvalues of W, ascending. The last is 1.
func (w *Mixing) Spectrum() []float64 { return eigenvalues(w.Matrix()) }

// Check returns an error unless [CheckMixing] accepts the matrix.
func (w *Mixing) Check() error { return CheckMixing(w.Matrix()) }

// CheckMixing returns an error unless w is symmetric, has no negative or infinite element, has rows
// that sum to 1 within 1e-12 and has a second largest eigenvalue below 1: the conditions under
// which averaging with w keeps the mean and reaches agreement.
func CheckMixing(w mat.Matrix) error {
	rows, cols := w.Dims()
	if rows != cols {
		return fmt.Errorf("the matrix is %d×%d, not square", rows, cols)
	}
	sym := mat.NewSymDense(rows, nil)
	for i := range rows {
		sum := 0.0
		for j := range cols {
			v := w.At(i, j)
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("w(%d,%d) is %v; weights must not be negative: take a smaller weight on the edges", i,
					j, v)
			}
			if v != w.At(j, i) {
				return fmt.Errorf("w(%d,%d) is %v and w(%d,%d) is %v; the matrix must be symmetric", i, j, v, j, i,
					w.At(j, i))
			}
			sum += v
			sym.SetSym(i, j, v)
		}
		if math.Abs(sum-1) > 1e-12 {
			return fmt.Errorf("row %d sums to %v, not to 1", i, sum)
		}
	}
	if rows == 1 {
		return nil
	}
	if second := eigenvalues(sym)[rows-2]; second > 1-1e-12 {
		return fmt.Errorf("the second largest eigenvalue is %v; it must be below 1, or the agents never agree: "+
			"take a larger weight on the edges", second)
	}
	return nil
}

// ActiveMixing holds the weights of the active edges: the own weights of a process that has some,
// else Metropolis weights, 1/(1+max(a_i,a_j)) on an active edge, where a_i is the number of active
// edges at i. The rest is on the diagonal. At every iteration the matrix is symmetric and its rows
// sum to 1; a single active edge averages its two ends. It is scratch memory of one agent, updated
// by Set at each iteration.
type ActiveMixing struct {
	process Process
	degree  []int // active edges at each agent
	events  []Event
	t       int
}

// NewActiveMixing returns the weights of a process among n agents, with no edge active.
func NewActiveMixing(p Process, n int) *ActiveMixing {
	return &ActiveMixing{process: p, degree: make([]int, n)}
}

// Set sets the events of iteration t. It allocates only if there are more events than ever before.
func (w *ActiveMixing) Set(events []Event, t int) {
	for _, e := range w.events {
		w.degree[e.From], w.degree[e.To] = 0, 0
	}
	w.events, w.t = append(w.events[:0], events...), t
	for _, e := range events {
		w.degree[e.From]++
		w.degree[e.To]++
	}
}

// Event returns the weight of event k of the latest Set, for both ends.
func (w *ActiveMixing) Event(k int) float64 { return w.weight(w.events[k]) }

func (w *ActiveMixing) weight(e Event) float64 {
	if w.process.Weighted() {
		return w.process.Weight(e, w.t)
	}
	return 1 / float64(1+max(w.degree[e.From], w.degree[e.To]))
}
