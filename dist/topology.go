package dist

import (
	"cmp"
	"math"
	"math/bits"

	"fspda/internal/bounded"
	"fspda/internal/rng"
)

// graphKind is a row of the table of graphs. A new graph needs nothing but its row.
type graphKind struct {
	Form
	example string // example is the spec in help texts; "": the name.
	// edges lists the edges among n agents in any order, duplicates allowed. It is nil where make is
	// not.
	edges func(n int) []Edge
	// make makes graphs with arguments, and graphs that do not exist for every n.
	make func(p Spec, n int, seed uint64) (*Graph, error)
	// extremes returns the second smallest and the largest eigenvalue of the Laplacian for three
	// agents and more; nil: they are computed.
	extremes func(g *Graph) (second, largest float64)
}

// graphKinds is the table of graphs. Its functions do not read it.
var graphKinds = []graphKind{
	{Form: Form{Name: "complete", Meaning: "all pairs"}, make: makeComplete, extremes: (*Graph).circulant},
	{Form: Form{Name: "ring", Meaning: "i to i+1, and the last to the first"}, edges: ring,
		extremes: (*Graph).circulant},
	{Form: Form{Name: "path", Meaning: "i to i+1"}, edges: path,
		extremes: func(g *Graph) (second, largest float64) { return pathExtremes(g.N) }},
	{Form: Form{Name: "star", Meaning: "0 to all others"}, edges: star,
		extremes: func(g *Graph) (second, largest float64) { return 1, float64(g.N) }},
	{Form: Form{Name: "er", Args: []Arg{Probability("p")},
		Meaning: "each pair with probability p, drawn anew until connected (Erdős and Rényi)"},
		example: "er(0.5)", make: parseER},
	{Form: Form{Name: "er10-published", Meaning: "the 16 edges between 10 agents of the published MNIST figures"},
		make: func(p Spec, n int, _ uint64) (*Graph, error) {
			if n != 10 {
				return nil, p.Errorf("it has 10 agents, not %d", n)
			}
			return build(p.Name, n, er10Published), nil
		}},
	{Form: Form{Name: "grid", Meaning: "a lattice as square as the number of agents allows"},
		edges: func(n int) []Edge { return gridEdges(n, false) }, extremes: gridExtremes(pathExtremes)},
	{Form: Form{Name: "torus", Meaning: "the grid, closed along each side longer than 2"},
		edges: func(n int) []Edge { return gridEdges(n, true) }, extremes: gridExtremes(ringExtremes)},
	{Form: Form{Name: "hypercube", Meaning: "i to i xor 2^k; the number of agents is a power of 2"},
		make:     makeHypercube,
		extremes: func(g *Graph) (second, largest float64) { return 2, 2 * float64(g.Degree(0)) }},
	{Form: Form{Name: "exponential", Meaning: "i to i+2^k, cyclic"}, edges: exponential,
		extremes: (*Graph).circulant},
	{Form: Form{Name: "one-peer-exp", Meaning: "the same, for the process of that name"}, edges: exponential},
	{Form: Form{Name: "static-exp", Meaning: "the same, for the process of that name"}, edges: exponential},
	{Form: Form{Name: "binary-tree", Meaning: "i to (i-1)/2, rounded down"}, edges: binaryTree},
	{Form: Form{Name: "base", Args: []Arg{Count("k")}, Meaning: "the edges of the process base(k)"},
		example: "base(2)", make: makeCycle},
	{Form: Form{Name: "simple-base", Args: []Arg{Count("k")}, Meaning: "the edges of the process simple-base(k)"},
		example: "simple-base(2)", make: makeCycle},
	{Form: Form{Name: "hyper-hypercube", Args: []Arg{Count("k")},
		Meaning: "the edges of the process hyper-hypercube(k)"}, example: "hyper-hypercube(2)", make: makeCycle},
	{Form: Form{Name: "regular", Args: []Arg{neighbours("k")},
		Meaning: "a random graph in which all have k neighbours, drawn anew until connected"},
		example: "regular(3)", make: parseRegular},
	{Form: Form{Name: "file", Args: []Arg{textArg(pathArg)},
		Meaning: "a file with one edge \"i j\" on each line; # begins a comment"},
		example: "file(PATH)", make: parseFile},
}

// GraphExamples lists a spec of each graph, for help texts.
func GraphExamples() (specs []string) {
	for _, g := range graphKinds {
		specs = append(specs, cmp.Or(g.example, g.Name))
	}
	return specs
}

// maxTries bounds the search for a connected random graph.
const maxTries = 1000

// er10Published is the Erdős-Rényi graph (n=10, p=0.5) of the published MNIST figures.
var er10Published = []Edge{{0, 5}, {0, 7},
	{1, 2}, {1, 7}, {1, 8}, {1, 9}, {2, 8}, {3, 4}, {3, 6}, {3, 9}, {4, 5}, {4, 7}, {4, 9}, {6, 8}, {6, 9}, {7, 9}}

// maxEdges bounds the edges of a graph, of which each takes 16 bytes, and more while it is made.
const maxEdges = 1 << 26

// checkEdges refuses a graph of more edges than maxEdges before it is made.
func (p Spec) checkEdges(n int, edges float64) error {
	if edges <= maxEdges {
		return nil
	}
	return p.Errorf("%d agents would have %.3g edges, at most %d are made: use fewer agents or a graph with fewer "+
		"edges, such as exponential or ring", n, edges, maxEdges)
}

// ParseGraph returns the connected graph of n agents that spec names. The error for an unknown spec
// lists all spellings. Only er and regular use the seed, with the stream "graph0". One agent is a
// graph without edges.
func ParseGraph(spec string, n int, seed uint64) (*Graph, error) {
	p, kind, err := readSpec("graph", spec, graphKinds)
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, p.Errorf("%d agents; it takes at least 1", n)
	}
	if kind.make != nil {
		return kind.make(p, n, seed)
	}
	return build(p.Name, n, kind.edges(n)), nil
}

// makeComplete refuses too many edges before they are made.
func makeComplete(p Spec, n int, _ uint64) (*Graph, error) {
	if err := p.checkEdges(n, float64(n)*float64(n-1)/2); err != nil {
		return nil, err
	}
	return build(p.Name, n, complete(n)), nil
}

func makeHypercube(p Spec, n int, _ uint64) (*Graph, error) {
	if n&(n-1) != 0 {
		return nil, p.Errorf("%d agents; it takes a power of 2, such as %d", n, 1<<bits.Len(uint(n)))
	}
	return build(p.Name, n, hypercube(n)), nil
}

// makeCycle makes the graph of the edges of a cycle.
func makeCycle(p Spec, n int, _ uint64) (*Graph, error) {
	rounds, err := parseCycle(p, n)
	if err != nil {
		return nil, err
	}
	return build(p.String(), n, rounds.union()), nil
}

func complete(n int) (edges []Edge) {
	for i := range n {
		for j := i + 1; j < n; j++ {
			edges = append(edges, Edge{i, j})
		}
	}
	return edges
}

func path(n int) (edges []Edge) {
	for i := range n - 1 {
		edges = append(edges, Edge{i, i + 1})
	}
	return edges
}

func ring(n int) []Edge {
	if n < 3 { // two agents share one edge
		return path(n)
	}
	return append(path(n), Edge{0, n - 1})
}

func star(n int) (edges []Edge) {
	for i := 1; i < n; i++ {
		edges = append(edges, Edge{0, i})
	}
	return edges
}

func hypercube(n int) (edges []Edge) {
	for i := range n {
		for b := 1; b < n; b <<= 1 {
			if i&b == 0 {
				edges = append(edges, Edge{i, i | b})
			}
		}
	}
	return edges
}

// exponential lists some edges twice, once from each end; build removes duplicates.
func exponential(n int) (edges []Edge) {
	for i := range n {
		for hop := 1; hop < n; hop <<= 1 {
			edges = append(edges, Edge{i, (i + hop) % n})
		}
	}
	return edges
}

func binaryTree(n int) (edges []Edge) {
	for i := 1; i < n; i++ {
		edges = append(edges, Edge{(i - 1) / 2, i})
	}
	return edges
}

// gridRows returns the number of rows of a grid or torus of n agents: the largest divisor r of n
// with r² <= n.
func gridRows(n int) int {
	r := 1
	for k := 2; k*k <= n; k++ {
		if n%k == 0 {
			r = k
		}
	}
	return r
}

// gridEdges numbers agents row by row. wrap closes a side longer than 2; along a side of 2 that
// would repeat an edge, and along a side of 1 it would be a self loop.
func gridEdges(n int, wrap bool) (edges []Edge) {
	r := gridRows(n)
	c := n / r
	for i := range r {
		for j := range c {
			if j+1 < c {
				edges = append(edges, Edge{i*c + j, i*c + j + 1})
			} else if wrap && c > 2 {
				edges = append(edges, Edge{i*c + j, i * c})
			}
			if i+1 < r {
				edges = append(edges, Edge{i*c + j, (i+1)*c + j})
			} else if wrap && r > 2 {
				edges = append(edges, Edge{i*c + j, j})
			}
		}
	}
	return edges
}

func parseER(p Spec, n int, seed uint64) (*Graph, error) {
	prob := p.Numbers[0]
	if err := p.checkEdges(n, prob*float64(n)*float64(n-1)/2); err != nil {
		return nil, err
	}
	chance := threshold(prob)
	for try := range uint64(maxTries) {
		s := rng.New(seed, "graph0", try)
		var edges []Edge
		for i := range n {
			for j := i + 1; j < n; j++ {
				if s.Uint64() <= chance {
					edges = append(edges, Edge{i, j})
				}
			}
		}
		if g := build(p.String(), n, edges); g.Connected() {
			return g, nil
		}
	}
	return nil, p.Errorf("none of %d graphs of %d agents was connected; take a larger probability, well above ln(n)/n "+
		"= %.2g", maxTries, n, math.Log(float64(n))/float64(n))
}

// threshold returns the number such that a uniform 64-bit number is <= threshold(p) with
// probability p, to within 2^-64 and never 0. p is in (0,1].
func threshold(p float64) uint64 {
	if p >= 1 {
		return math.MaxUint64
	}
	return uint64(max(math.Ldexp(p, 64), 1)) - 1
}

// neighbours is an argument that is a number of neighbours, which may be 0.
func neighbours(name string) Arg {
	return Whole(name, 0, math.MaxInt, "%q is not a number of neighbours")
}

func parseRegular(p Spec, n int, seed uint64) (*Graph, error) {
	k := p.Whole(0)
	switch {
	case k >= n:
		return nil, p.Errorf("%d neighbours each among %d agents; at most %d are possible", k, n, n-1)
	case n%2 == 1 && k%2 == 1:
		return nil, p.Errorf("%d agents with %d neighbours each have an odd sum of degrees; make one of the two "+
			"even", n, k)
	case k < 2 && n > k+1:
		return nil, p.Errorf("%d agents with %d neighbours each cannot be connected; take at least 2", n, k)
	}
	if err := p.checkEdges(n, float64(n)*float64(k)/2); err != nil {
		return nil, err
	}
	for try := range uint64(maxTries) {
		edges, ok := drawRegular(n, k, rng.New(seed, "graph0", try))
		if !ok {
			continue
		}
		if g := build(p.String(), n, edges); g.Connected() {
			return g, nil
		}
	}
	return nil, p.Errorf("none of %d random graphs of %d agents was regular and connected; take another seed or more "+
		"neighbours", maxTries, n)
}

// drawRegular joins random free half-edges that may be joined until none is left, and returns false
// if the rest cannot be joined (Steger and Wormald: Generating random regular graphs quickly,
// 1999).
func drawRegular(n, k int, s rng.Stream) (edges []Edge, ok bool) {
	var free []int // the agent of each free half-edge
	for i := range n {
		for range k {
			free = append(free, i)
		}
	}
	joined := make(map[Edge]bool, n*k/2)
	for len(free) > 0 {
		a, b, found := pickPair(free, joined, &s)
		if !found {
			return nil, false
		}
		e := Edge{min(free[a], free[b]), max(free[a], free[b])}
		joined[e] = true
		edges = append(edges, e)
		// Move both to the end, the later one first: the earlier one cannot be where the later one
		// goes.
		last := len(free) - 1
		free[max(a, b)], free[last] = free[last], free[max(a, b)]
		free[min(a, b)], free[last-1] = free[last-1], free[min(a, b)]
		free = free[:last-1]
	}
	return edges, true
}

// pickPair returns two positions of free whose agents differ and are not joined yet, uniform among
// all such pairs.
func pickPair(free []int, joined map[Edge]bool, s *rng.Stream) (a, b int, ok bool) {
	fits := func(a, b int) bool {
		i, j := free[a], free[b]
		return i != j && !joined[Edge{min(i, j), max(i, j)}]
	}
	for range 32 { // nearly always enough
		if a, b = s.IntN(len(free)), s.IntN(len(free)); fits(a, b) {
			return a, b, true
		}
	}
	var pairs [][2]int
	for a := range free {
		for b := a + 1; b < len(free); b++ {
			if fits(a, b) {
				pairs = append(pairs, [2]int{a, b})
			}
		}
	}
	if len(pairs) == 0 {
		return 0, 0, false
	}
	p := pairs[s.IntN(len(pairs))]
	return p[0], p[1], true
}

// parseFile reads an edge list. Its errors name the file and the line.
func parseFile(p Spec, n int, _ uint64) (*Graph, error) {
	path := p.Texts[0]
	f, err := bounded.Open(path)
	if err != nil {
		return nil, p.Errorf("cannot read the edge list: %v", err)
	}
	defer f.Close()
	var edges []Edge
	err = readRows(f, 2, func(row []int) error {
		e := Edge{row[0], row[1]}
		if err := checkEdge(e, n); err != nil {
			return err
		}
		edges = append(edges, e)
		return nil
	})
	if err != nil {
		return nil, p.Errorf("%s:%v", path, err)
	}
	g := build(p.String(), n, edges)
	if err := g.checkConnected(); err != nil {
		return nil, p.Errorf("%v", err)
	}
	return g, nil
}
