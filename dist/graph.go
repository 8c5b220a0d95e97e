package dist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Edge joins two different agents. In a [Graph], I < J.
type Edge struct{ I, J int }

// Graph is the fixed communication graph: undirected, without self loops, connected. It is
// immutable: exported fields and returned slices are read-only. Make one with [ParseGraph] or
// [NewGraph].
type Graph struct {
	N     int    // agents, numbered 0..N-1
	Edges []Edge // ascending by (I,J); the position is the edge's number

	spec     string
	peers    [][]int // peers[i]: neighbours of i, ascending
	incident [][]int // incident[i][k]: number of the edge from i to peers[i][k]
	maxDeg   int
}

// NewGraph returns the graph of n agents with the given edges, in any order and orientation;
// duplicates count once. A self loop, an agent outside 0..n-1 and a disconnected graph are errors;
// the last one lists the components. The String of the graph is "custom".
func NewGraph(n int, edges []Edge) (*Graph, error) {
	if n < 1 {
		return nil, fmt.Errorf("dist: a graph of %d agents; it takes at least 1", n)
	}
	for _, e := range edges {
		if err := checkEdge(e, n); err != nil {
			return nil, fmt.Errorf("dist: graph of %d agents: %w", n, err)
		}
	}
	g := build("custom", n, edges)
	if err := g.checkConnected(); err != nil {
		return nil, fmt.Errorf("dist: graph of %d agents: %w", n, err)
	}
	return g, nil
}

// compareEdges orders edges by (I,J).
func compareEdges(a, b Edge) int { return cmp.Or(a.I-b.I, a.J-b.J) }

func checkEdge(e Edge, n int) error {
	for _, v := range []int{e.I, e.J} {
		if v < 0 || v >= n {
			return fmt.Errorf("edge (%d,%d) names agent %d; the agents are 0 to %d", e.I, e.J, v, n-1)
		}
	}
	if e.I == e.J {
		return fmt.Errorf("edge (%d,%d) joins agent %d to itself; leave it out", e.I, e.J, e.I)
	}
	return nil
}

// build returns a Graph of valid edges, connected or not.
func build(spec string, n int, edges []Edge) *Graph {
	sorted := make([]Edge, len(edges))
	for k, e := range edges {
		sorted[k] = Edge{min(e.I, e.J), max(e.I, e.J)}
	}
	slices.SortFunc(sorted, compareEdges)
	g := &Graph{N: n, Edges: slices.Compact(sorted), spec: spec, peers: make([][]int, n), incident: make([][]int, n)}
	// Lower neighbours first, then higher ones: each list is ascending.
	for k, e := range g.Edges {
		g.peers[e.J] = append(g.peers[e.J], e.I)
		g.incident[e.J] = append(g.incident[e.J], k)
	}
	for k, e := range g.Edges {
		g.peers[e.I] = append(g.peers[e.I], e.J)
		g.incident[e.I] = append(g.incident[e.I], k)
	}
	for _, p := range g.peers {
		g.maxDeg = max(g.maxDeg, len(p))
	}
	return g
}

// String returns the spec from which [ParseGraph] makes this graph, given the same n and seed.
func (g *Graph) String() string { return g.spec }

// Neighbours returns the neighbours of agent i, ascending.
func (g *Graph) Neighbours(i int) []int { return g.peers[i] }

// Incident returns the numbers of the edges at agent i, in the order of [Graph.Neighbours].
func (g *Graph) Incident(i int) []int { return g.incident[i] }

func (g *Graph) Degree(i int) int { return len(g.peers[i]) }

// MaxDegree returns the largest degree, 0 for a single agent.
func (g *Graph) MaxDegree() int { return g.maxDeg }

// EdgeIndex returns the number of the edge between i and j, in either order, and whether there is
// one.
func (g *Graph) EdgeIndex(i, j int) (int, bool) {
	if i < 0 || i >= g.N {
		return 0, false
	}
	k, ok := slices.BinarySearch(g.peers[i], j)
	if !ok {
		return 0, false
	}
	return g.incident[i][k], true
}

// Components returns the connected components, each ascending, ordered by their smallest agents.
func (g *Graph) Components() [][]int {
	seen := make([]bool, g.N)
	var all [][]int
	for start := range g.N {
		if seen[start] {
			continue
		}
		seen[start] = true
		piece := []int{start}
		for k := 0; k < len(piece); k++ {
			for _, j := range g.peers[piece[k]] {
				if !seen[j] {
					seen[j] = true
					piece = append(piece, j)
				}
			}
		}
		slices.Sort(piece)
		all = append(all, piece)
	}
	return all
}

func (g *Graph) Connected() bool { return len(g.Components()) == 1 }

func (g *Graph) checkConnected() error {
	pieces := g.Components()
	if len(pieces) == 1 {
		return nil
	}
	return fmt.Errorf("it has %d connected components: %s; add edges between them", len(pieces), describePieces(pieces))
}

// describePieces lists at most eight components of at most eight agents.
func describePieces(pieces [][]int) string {
	return atMostEight(pieces, func(p []int) string { return "{" + atMostEight(p, strconv.Itoa) + "}" })
}

func atMostEight[T any](all []T, describe func(T) string) string {
	var words []string
	for _, v := range all[:min(8, len(all))] {
		words = append(words, describe(v))
	}
	if more := len(all) - len(words); more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, " ")
}

// Laplacian returns the N×N matrix D - A: degrees on the diagonal, -1 where there is an edge.
func (g *Graph) Laplacian() *mat.SymDense {
	l := mat.NewSymDense(g.N, nil)
	for i := range g.N {
		l.SetSym(i, i, float64(g.Degree(i)))
	}
	for _, e := range g.Edges {
		l.SetSym(e.I, e.J, -1)
	}
	return l
}

// Spectrum returns the N eigenvalues of the Laplacian, ascending. The first is 0, the second
// positive since the graph is connected.
func (g *Graph) Spectrum() []float64 { return eigenvalues(g.Laplacian()) }

func eigenvalues(a mat.Symmetric) []float64 {
	var eig mat.EigenSym
	if !eig.Factorize(a, false) {
		// Possible only with a NaN or an infinity, which all callers exclude.
		panic("dist: the eigenvalues of a finite symmetric matrix did not converge")
	}
	return eig.Values(nil)
}
