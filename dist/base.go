package dist

import (
	"slices"
	"sort"
	"strings"

	spell "fspda/internal/spelling"
)

// link is an edge of a round with its weight.
type link struct {
	Edge
	weight float64
}

// cycle is a sequence of averaging rounds.
type cycle [][]link

// cycles are the graphs that are the union of a sequence of rounds, which is the edge process of
// the same name. The agents have the exact mean after each sequence.
var cycles = map[string]func(n, k int) (cycle, bool){
	"hyper-hypercube": func(n, k int) (cycle, bool) {
		return hyperHypercube(agentsFrom(0, n), k), smoothPart(n, k) == n
	},
	"simple-base": func(n, k int) (cycle, bool) { return simpleBase(agentsFrom(0, n), k), true },
	"base":        func(n, k int) (cycle, bool) { return base(n, k), true },
}

// parseCycle returns the rounds that a spec of cycles names, among n agents.
func parseCycle(p Spec, n int) (cycle, error) {
	k := p.Whole(0)
	rounds, ok := cycles[p.Name](n, min(k, n)) // An agent has at most n-1 edges.
	if !ok {
		return nil, p.Errorf("%d agents have a prime factor above %d: take a number of agents without one, a "+
			"larger k, or base(%d)", n, k+1, k)
	}
	return rounds, nil
}

// ProcessOfGraph returns the spec of the edge process that a graph is made for, such as base(2),
// and whether there is one: graph and process have the same name.
func ProcessOfGraph(spec string) (process string, ok bool) {
	name, _, _, err := spell.Split(spec)
	_, graph := rowOf(graphKinds, name)
	_, made := rowOf(processKinds, name)
	return strings.TrimSpace(spec), err == nil && graph && made
}

// InPairs reports whether a spec names a cycle in which no agent has two edges at once.
func InPairs(spec string) bool {
	name, arg, _, err := spell.Split(spec)
	return err == nil && cycles[name] != nil && arg == "1"
}

// union lists the edges of all rounds.
func (c cycle) union() (edges []Edge) {
	for _, round := range c {
		for _, l := range round {
			edges = append(edges, l.Edge)
		}
	}
	return edges
}

// repeated is the Process of a cycle: all edges of round t mod its length, with its weights.
type repeated struct {
	process
	weights [][]link // The links of each round, ascending by edge.
}

func (repeated) Weighted() bool { return true }

func (p repeated) Period() int { return len(p.weights) }

func (p repeated) Weight(e Event, t int) float64 {
	round := p.weights[t%len(p.weights)]
	want := Edge{min(e.From, e.To), max(e.From, e.To)}
	at, _ := slices.BinarySearchFunc(round, want, func(l link, e Edge) int { return compareEdges(l.Edge, e) })
	return round[at].weight
}

// newRepeated returns the process of a cycle on g, which must be the graph of its edges.
func newRepeated(p Spec, l edgeSampler) (Process, error) {
	g, spec := l.g, p.String()
	rounds, err := parseCycle(p, g.N)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(build("", g.N, rounds.union()).Edges, g.Edges) {
		return nil, p.Errorf("its edges are not those of graph %s: use graph %s", g, spec)
	}
	if len(rounds) == 0 { // a single agent
		rounds = cycle{nil}
	}
	events, share := make([][]Event, len(rounds)), make([]float64, len(g.Edges))
	for t, round := range rounds {
		slices.SortFunc(round, func(a, b link) int { return compareEdges(a.Edge, b.Edge) })
		for _, l := range round {
			k, _ := g.EdgeIndex(l.I, l.J)
			events[t] = append(events[t], g.event(k))
			share[k] += 1 / float64(len(rounds))
		}
	}
	return repeated{process{spec, func(edge int) float64 { return share[edge] }, func(dst []Event, t int) []Event {
		return append(dst, events[t%len(events)]...)
	}}, rounds}, nil
}

// agentsFrom lists n agents from the given one on.
func agentsFrom(first, n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = first + i
	}
	return all
}

// smoothPart is the largest divisor of n without a prime factor above k+1.
func smoothPart(n, k int) int {
	part := 1
	for f := 2; f <= min(n, k+1); f++ {
		for n%f == 0 {
			n, part = n/f, part*f
		}
	}
	return part
}

// clique averages nodes: the weight 1/size on each pair.
func (c cycle) clique(t int, nodes ...int) {
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			c[t] = append(c[t], link{Edge{min(a, b), max(a, b)}, 1 / float64(len(nodes))})
		}
	}
}

// play appends round c modulo its length of other to round t.
func (c cycle) play(t int, other cycle, at int) {
	if len(other) > 0 { // a single node does not average
		c[t] = append(c[t], other[at%len(other)]...)
	}
}

// hyperHypercube is the k-peer hyper-hypercube of nodes whose number has no prime factor above k+1
// (Takezawa et al. 2023, algorithm 1). In round l the nodes that differ only in digit l of the
// mixed radix number of their position average.
func hyperHypercube(nodes []int, k int) (rounds cycle) {
	n, factors := len(nodes), []int(nil)
	for f := min(k+1, n); f >= 2; f-- {
		for ; n%f == 0; n /= f {
			factors = append(factors, f)
		}
	}
	sort.Ints(factors)
	stride := 1
	for t, f := range factors {
		rounds = append(rounds, nil)
		for first := range nodes {
			if first/stride%f != 0 {
				continue
			}
			var group []int
			for digit := range f {
				group = append(group, nodes[first+digit*stride])
			}
			rounds.clique(t, group...)
		}
		stride *= f
	}
	return rounds
}

// part is a part of the nodes of a Simple Base graph: blocks of (k+1)^p consecutive nodes.
type part struct {
	nodes  []int
	blocks [][]int
}

// digits cuts the nodes into parts by the digits of their number to the base k+1, the leading digit
// first. It returns the exponent of that digit as well.
func digits(nodes []int, k int) (parts []part, highest int) {
	size := 1
	for size <= len(nodes)/(k+1) {
		size, highest = size*(k+1), highest+1
	}
	for ; size >= 1; size /= k + 1 {
		count := len(nodes) / size
		if count == 0 {
			continue
		}
		p := part{nodes: nodes[:count*size]}
		for b := range count {
			p.blocks = append(p.blocks, p.nodes[b*size:(b+1)*size])
		}
		if size == 1 { // fewer than k+1 nodes are one block
			p.blocks = [][]int{p.nodes}
		}
		parts, nodes = append(parts, p), nodes[count*size:]
	}
	return parts, highest
}

// simpleBase is the Simple Base-(k+1) graph (Takezawa et al. 2023, algorithm 2). The parts average
// within themselves, then part after part lends to the later ones, and those that have lent average
// within their blocks.
func simpleBase(nodes []int, k int) cycle {
	if smoothPart(len(nodes), k) == len(nodes) {
		return hyperHypercube(nodes, k)
	}
	parts, highest := digits(nodes, k)
	first := len(hyperHypercube(parts[0].nodes, k))
	rounds := make(cycle, first+1+highest)
	for l, p := range parts {
		inside := hyperHypercube(p.nodes, k)
		for t := range first {
			rounds.play(t, inside, t)
		}
		begin := first + l + 1 // The part has lent before.
		if l == len(parts)-1 {
			begin = first + l // the last one never lends
		} else {
			rounds.lend(begin-1, parts[l:], k)
		}
		for _, block := range p.blocks {
			inside := hyperHypercube(block, k)
			for t := begin; t < len(rounds); t++ {
				rounds.play(t, inside, t-begin)
			}
		}
	}
	return rounds
}

// lend joins each node of the parts after the first with one node of each block of the first. The
// other nodes of the first part average in groups of k+1.
func (c cycle) lend(t int, parts []part, k int) {
	lender, total := parts[0], 0
	for _, p := range parts {
		total += len(p.nodes)
	}
	weight := float64(len(lender.nodes)) / float64(total) / float64(len(lender.blocks))
	left := slices.Clone(lender.blocks)
	for l := len(parts) - 1; l > 0; l-- {
		for _, i := range parts[l].nodes {
			for b, block := range left {
				last := block[len(block)-1]
				c[t] = append(c[t], link{Edge{min(i, last), max(i, last)}, weight})
				left[b] = block[:len(block)-1]
			}
		}
	}
	for group := range slices.Chunk(slices.Concat(left...), k+1) {
		c.clique(t, group...)
	}
}

// base is the Base-(k+1) graph (Takezawa et al. 2023, algorithm 3): rows that average as Simple
// Base graphs, then columns as hyper-hypercubes, unless the Simple Base graph of all is shorter.
func base(n, k int) cycle {
	simple := simpleBase(agentsFrom(0, n), k)
	rows := smoothPart(n, k)
	size := n / rows
	if rows == 1 || size == 1 {
		return simple
	}
	var rounds cycle
	merge := func(begin int, more cycle) {
		for t, round := range more {
			if begin+t == len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[begin+t] = append(rounds[begin+t], round...)
		}
	}
	for r := range rows {
		merge(0, simpleBase(agentsFrom(r*size, size), k))
	}
	columns := len(rounds)
	for j := range size {
		nodes := make([]int, rows)
		for r := range nodes {
			nodes[r] = r*size + j
		}
		merge(columns, hyperHypercube(nodes, k))
	}
	if len(simple) < len(rounds) {
		return simple
	}
	return rounds
}
