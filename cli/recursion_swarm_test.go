//go:build !windows

package cli

import (
	"fmt"
	"math"

	"fspda/dist"
	"fspda/internal/rng"
)

// Recursions of Swarm-SGD: pairs of agents average models that a lattice rounds.

// lattice rounds numbers to multiples of its side, of which only the colour is sent: the number of
// the multiple modulo colours. A side of 0 sends numbers as they are.
type lattice struct {
	side, colours float64
	stochastic    bool
	random        rng.Stream
}

// newLattice draws a lattice, or none.
func (r *recursion) newLattice() lattice {
	l := lattice{random: rng.New(r.seed, "quant")}
	spec := one(r, "compress", "identity", "lattice(0.002,1024)", "lattice(0.002,1024,stochastic)")
	fmt.Sscanf(spec, "lattice(%g,%g", &l.side, &l.colours)
	if l.side > 0 {
		r.iterations = 5 // each needs a run
	}
	l.stochastic = spec == "lattice(0.002,1024,stochastic)"
	return l
}

// cells returns for each number the multiples to which it may be rounded: one, or two if it is so
// near to the limit that rounding errors decide. They are those of vector number which of agent i.
func (l lattice) cells(v []float64, t, i, which int) [][]float64 {
	s, out := l.random.Sub(uint64(t), uint64(i), uint64(which)), make([][]float64, len(v))
	for k, x := range v {
		if l.side == 0 {
			out[k] = []float64{x}
			continue
		}
		limit, cell := 0.5, x/l.side
		if l.stochastic {
			limit = s.Float64()
		}
		low := math.Floor(cell)
		switch share := cell - low; { // it is rounded up above the limit
		case math.Abs(share-limit) < rounding/l.side:
			out[k] = []float64{low, low + 1}
		case share > limit:
			out[k] = []float64{low + 1}
		default:
			out[k] = []float64{low}
		}
	}
	return out
}

// point is the multiple of the side with the colour of a cell that is nearest to ref.
func (l lattice) point(cell, ref float64) float64 {
	if l.side == 0 {
		return cell
	}
	z, period := math.Mod(cell, l.colours), l.colours*l.side
	if z < 0 {
		z += l.colours
	}
	return period*math.RoundToEven(ref/period-z/l.colours) + l.side*z
}

// initiator returns the ends of an event, the initiator first. Those of a matching toss a coin.
func (r *recursion) initiator(t int, e dist.Event) (from, to int) {
	coin := rng.New(r.seed, "initiator", uint64(t), uint64(e.Edge))
	if r.edges == "matching" && coin.Uint64()>>63 == 1 {
		return e.To, e.From
	}
	return e.From, e.To
}

// swarm is the form without blocking: o is an agent's model when it last initiated an exchange, and
// c the copy that others average with.
func (r *recursion) swarm() {
	l := r.newLattice()
	o, c := cloned(r.x), cloned(r.x)
	for t := range r.times(1) {
		starts, copies := make([][][]float64, r.n), make([][][]float64, r.n)
		for i := range r.n {
			starts[i], copies[i] = l.cells(o[i], t, i, 0), l.cells(c[i], t, i, 1)
		}
		r.x = r.stepAll(nil)
		r.exchanges(t, func(e dist.Event, _ float64) {
			from, to := r.initiator(t, e)
			next := map[int][]float64{}
			for _, a := range []int{from, to} {
				moved := make([]float64, r.d)
				if a == from {
					moved = plus(r.x[a], -1, o[a])
				}
				var program []float64
				tie := r.deciding(func(k int) float64 {
					if program == nil {
						program = r.after(t+1, a, "c")
					}
					return program[k] - moved[k]
				})
				near := func(k, of int) float64 { return l.point(starts[of][k][0], o[a][k]) }
				next[a] = l.meet(copies[from], copies[to], func(k int, own, other float64) float64 {
					return (l.point(own, near(k, from)) + l.point(other, near(k, to))) / 2
				}, tie)
				next[a] = plus(next[a], 1, moved)
			}
			c[from], c[to] = next[from], next[to]
			o[from], r.x[from] = c[from], c[from]
		})
	}
	r.ties = 0 // copies are in the middle between two lattice points
}

// meet returns the means of two vectors of cells. mean has that of two cells at coordinate k.
func (lattice) meet(a, b [][]float64, mean func(k int, a, b float64) float64, tie decide) []float64 {
	out := make([]float64, len(a))
	for k := range out {
		var outcomes []float64
		for _, x := range a[k] {
			for _, y := range b[k] {
				outcomes = append(outcomes, mean(k, x, y))
			}
		}
		if out[k] = outcomes[0]; len(outcomes) > 1 {
			out[k] = tie(k, outcomes...)
		}
	}
	return out
}

// swarmBlocking is the form in which only pairs compute, h steps each.
func (r *recursion) swarmBlocking() {
	one(r, "swarm", "blocking")
	h, l := one(r, "local-steps", 1, 2), r.newLattice()
	for t := range r.times(1) {
		r.exchanges(t, func(e dist.Event, _ float64) {
			pair := []int{e.From, e.To}
			for _, i := range pair {
				for range h {
					r.x[i] = plus(r.x[i], -1, r.descend(i, r.x[i], nil))
				}
			}
			next := zeroes(2, r.d)
			for at, i := range pair {
				j := pair[1-at]
				var program []float64
				own := make([][]float64, r.d)
				for k, x := range r.x[i] {
					own[k] = []float64{x}
				}
				next[at] = l.meet(own, l.cells(r.x[j], t, j, 0), func(_ int, x, other float64) float64 {
					return (x + l.point(other, x)) / 2
				}, r.deciding(func(k int) float64 {
					if program == nil {
						program = r.after(t+1, i, "x")
					}
					return program[k]
				}))
				r.decisions += r.d
			}
			r.x[e.From], r.x[e.To] = next[0], next[1]
		})
	}
}

// cloned copies a list of vectors.
func cloned(v [][]float64) (all [][]float64) {
	for _, x := range v {
		all = append(all, plus(x, 0, x))
	}
	return all
}
