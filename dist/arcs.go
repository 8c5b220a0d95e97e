package dist

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"fspda/internal/bounded"
	"fspda/internal/rng"
	spell "fspda/internal/spelling"
)

// Arc is one direction of an edge of the graph: From sends to To.
type Arc struct{ Edge, From, To int }

// Directed is a Process in which agents send one way. An algorithm on directed graphs uses Arcs;
// all others use Active, which returns every edge with an arc, and exchange in both directions.
type Directed interface {
	Process
	// Arcs overwrites dst with the arcs of iteration t >= 0, ascending by edge and then by From, and
	// returns it.
	Arcs(dst []Arc, t int) []Arc
	// Regular reports whether, in every iteration, all agents send to as many others as they receive
	// from, all to the same number.
	Regular() bool
	// ArcRate returns the mean number of arcs of an iteration.
	ArcRate() float64
}

// OneWay reports whether a spec names a [Directed] process.
func OneWay(spec string) bool {
	kind, _ := rowOf(processKinds, spell.Name(spec))
	return kind.oneWay
}

// directed implements the processes of arcs.
type directed struct {
	process
	// arcs appends the arcs of iteration t to dst, which is empty. Their order does not matter.
	arcs    func(dst []Arc, t int) []Arc
	regular bool
	mean    float64
}

func (p directed) Directed() Directed { return p }

func (p directed) Arcs(dst []Arc, t int) []Arc {
	checkTime(t)
	dst = p.arcs(dst[:0], t)
	slices.SortFunc(dst, func(a, b Arc) int { return cmp.Or(a.Edge-b.Edge, a.From-b.From) })
	return dst
}

func (p directed) Regular() bool { return p.regular }

func (p directed) ArcRate() float64 { return p.mean }

// newDirected completes the process of arcs with the events of Active: an edge is active if an arc
// of it is.
func newDirected(g *Graph, spec string, regular bool, mean float64, rate func(edge int) float64,
	arcs func(dst []Arc, t int) []Arc) directed {
	p := directed{arcs: arcs, regular: regular, mean: mean}
	scratch := &sync.Pool{New: func() any { return new([]Arc) }}
	p.process = process{spec, rate, func(dst []Event, t int) []Event {
		s := scratch.Get().(*[]Arc)
		*s = p.Arcs(*s, t)
		for _, a := range *s {
			if n := len(dst); n == 0 || dst[n-1].Edge != a.Edge {
				dst = append(dst, g.event(a.Edge))
			}
		}
		scratch.Put(s)
		return dst
	}}
	return p
}

// newExponential returns the process in which agent i sends to i + 2^k, cyclic, for each k < L in
// turn, or for all at once. L is the least number with 2^L >= n.
func newExponential(p Spec, l edgeSampler) (Process, error) {
	g := l.g
	n, hops := g.N, bits.Len(uint(g.N-1))
	byHop, rates := make([][]Arc, hops), make([]float64, len(g.Edges))
	for k := range hops {
		for i := range n {
			to := (i + 1<<k) % n
			edge, ok := g.EdgeIndex(i, to)
			if !ok {
				return nil, p.Errorf("agent %d sends to agent %d, which is no edge of the graph %s: use graph "+
					"exponential, complete or %s, or edges push(1)", i, to, g, p.Name)
			}
			if !slices.Contains(byHop[k], Arc{edge, to, i}) { // One of the two arcs of an edge counts.
				rates[edge] += 1 / float64(hops)
			}
			byHop[k] = append(byHop[k], Arc{edge, i, to})
		}
	}
	if p.Name == "static-exp" {
		all := slices.Concat(byHop...)
		rate := func(edge int) float64 { return math.Ceil(rates[edge]) }
		return newDirected(g, p.Name, true, float64(len(all)), rate, func(dst []Arc, _ int) []Arc {
			return append(dst, all...)
		}), nil
	}
	if hops == 0 { // a single agent
		return newDirected(g, p.Name, true, 0, each(0), func(dst []Arc, _ int) []Arc { return dst }), nil
	}
	return newDirected(g, p.Name, true, float64(n), func(edge int) float64 { return rates[edge] },
		func(dst []Arc, t int) []Arc { return append(dst, byHop[t%hops]...) }), nil
}

// newPush returns the process in which each agent sends to k of its neighbours, drawn anew in each
// iteration, or to all if it has at most k.
func newPush(p Spec, l edgeSampler) (Process, error) {
	k, g, mean := p.Whole(0), l.g, 0.0
	for i := range g.N {
		mean += float64(min(k, g.Degree(i)))
	}
	misses := func(i int) float64 { return 1 - min(1, float64(k)/float64(g.Degree(i))) }
	rate := func(edge int) float64 { return 1 - float64(misses(g.Edges[edge].I)*misses(g.Edges[edge].J)) }
	return newDirected(g, p.String(), false, mean, rate, func(dst []Arc, t int) []Arc {
		s := l.at(t)
		for i := range g.N {
			dst = g.pushFrom(dst, &s, i, k)
		}
		return dst
	}), nil
}

// pushFrom appends the arcs from agent i to k of its neighbours, by selection sampling.
func (g *Graph) pushFrom(dst []Arc, s *rng.Stream, i, k int) []Arc {
	peers := g.Neighbours(i)
	missing := min(k, len(peers))
	for at, peer := range peers {
		if missing > 0 && s.IntN(len(peers)-at) < missing {
			dst = append(dst, Arc{g.Incident(i)[at], i, peer})
			missing--
		}
	}
	return dst
}

// readArcs reads lines "i j": agent i sends to agent j in every iteration. Its errors name the file
// and the line.
func readArcs(p Spec, l edgeSampler) (Process, error) {
	g, path := l.g, p.Texts[0]
	f, err := bounded.Open(path)
	if err != nil {
		return nil, p.Errorf("cannot read the arcs: %v", err)
	}
	defer f.Close()
	var arcs []Arc
	err = readRows(f, 2, func(row []int) error {
		edge, ok := g.EdgeIndex(row[0], row[1])
		if !ok {
			return fmt.Errorf("(%d,%d) is not an edge of the graph %s of %d agents", row[0], row[1], g, g.N)
		}
		if a := (Arc{edge, row[0], row[1]}); !slices.Contains(arcs, a) {
			arcs = append(arcs, a)
		}
		return nil
	})
	if err != nil {
		return nil, p.Errorf("%s:%v", path, err)
	}
	if at, ok := unreached(g.N, arcs); !ok {
		return nil, p.Errorf("%s: no way leads from agent %d to agent %d: every agent must reach all others", path,
			at[0], at[1])
	}
	active := make([]float64, len(g.Edges))
	for _, a := range arcs {
		active[a.Edge] = 1
	}
	return newDirected(g, p.String(), regularArcs(g.N, arcs), float64(len(arcs)),
		func(edge int) float64 { return active[edge] },
		func(dst []Arc, _ int) []Arc { return append(dst, arcs...) }), nil
}

// unreached returns two agents of which the first cannot reach the second over the arcs; ok: there
// are none.
func unreached(n int, arcs []Arc) (pair [2]int, ok bool) {
	for _, back := range [2]bool{false, true} {
		next := make([][]int, n)
		for _, a := range arcs {
			from, to := a.From, a.To
			if back {
				from, to = to, from
			}
			next[from] = append(next[from], to)
		}
		seen, queue := make([]bool, n), []int{0}
		for seen[0] = true; len(queue) > 0; queue = queue[1:] {
			for _, j := range next[queue[0]] {
				if !seen[j] {
					seen[j] = true
					queue = append(queue, j)
				}
			}
		}
		if j := slices.Index(seen, false); j >= 0 {
			if back {
				return [2]int{j, 0}, false
			}
			return [2]int{0, j}, false
		}
	}
	return pair, true
}

// regularArcs reports whether all agents have the same number of arcs in and out.
func regularArcs(n int, arcs []Arc) bool {
	in, out := make([]int, n), make([]int, n)
	for _, a := range arcs {
		in[a.To]++
		out[a.From]++
	}
	return slices.Max(in) == slices.Min(in) && slices.Max(out) == slices.Min(out)
}
