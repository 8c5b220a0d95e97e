package arm64

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// generals are the registers that a function may use: R18 is the platform's, R27 the assembler's,
// R28 is the goroutine, R29 and R30 belong to the frame.
var generals = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24, 25, 26}

// available returns the numbers of the registers of a class.
func (c class) available() []int {
	if c == general {
		return generals
	}
	all := make([]int, 32)
	for i := range all {
		all[i] = i
	}
	return all
}

// set is a set of virtual registers of one class.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s set) put(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) drop(i int)     { s[i/64] &^= 1 << (i % 64) }

func (s set) each(do func(int)) {
	for w, v := range s {
		for ; v != 0; v &= v - 1 {
			do(64*w + bits.TrailingZeros64(v))
		}
	}
}

// live returns, for each instruction, the registers of a class that are read after it before they
// are set.
func (f *Func) live(c class) []set {
	at := map[string]int{}
	for i, in := range f.insts {
		if in.label != "" {
			at[in.label] = i
		}
	}
	out := make([]set, len(f.insts))
	in := make([]set, len(f.insts)+1)
	for i := range in {
		in[i] = newSet(f.count[c])
		if i < len(out) {
			out[i] = newSet(f.count[c])
		}
	}
	for changed := true; changed; {
		changed = false
		for i := len(f.insts) - 1; i >= 0; i-- {
			n, o := &f.insts[i], out[i]
			if !n.ends {
				for w := range o {
					o[w] |= in[i+1][w]
				}
			}
			if n.to != "" {
				target, ok := at[n.to]
				if !ok {
					f.fail("no label %s", n.to)
					return out
				}
				for w := range o {
					o[w] |= in[target][w]
				}
			}
			before := slices.Clone(o)
			for _, r := range n.defs {
				if r.class == c {
					before.drop(r.id)
				}
			}
			for _, r := range n.uses {
				if r.class == c {
					before.put(r.id)
				}
			}
			if !slices.Equal(before, in[i]) {
				in[i], changed = before, true
			}
		}
	}
	if len(f.insts) > 0 {
		in[0].each(func(id int) { f.fail("register %d of class %d is read before it is set", id, c) })
	}
	return out
}

// removeUnused removes instructions whose results nothing reads.
func (f *Func) removeUnused() {
	for {
		lives := [2][]set{f.live(general), f.live(vector)}
		if f.fault != nil {
			return
		}
		var kept []inst
		for i, n := range f.insts {
			used := n.effect || n.label != ""
			for _, r := range n.defs {
				used = used || lives[r.class][i].has(r.id)
			}
			if used {
				kept = append(kept, n)
			}
		}
		if len(kept) == len(f.insts) {
			return
		}
		f.insts = kept
	}
}

// graph tells which registers of a class cannot be the same.
type graph struct {
	class     class
	neighbors []set
	moves     [][2]int // copies
	same      []int    // the register that each one is joined with, itself if with none
	number    []int    // assigned, or -1
}

func (f *Func) graph(c class) *graph {
	n := f.count[c]
	g := &graph{class: c, neighbors: make([]set, n), same: make([]int, n), number: make([]int, n)}
	for i := range n {
		g.neighbors[i], g.same[i], g.number[i] = newSet(n), i, -1
	}
	for i, out := range f.live(c) {
		in := &f.insts[i]
		for k, d := range in.defs {
			if d.class != c {
				continue
			}
			out.each(func(r int) {
				if in.move && r == in.uses[0].id {
					return
				}
				g.separate(d.id, r)
			})
			for _, e := range in.defs[:k] {
				if e.class == c {
					g.separate(d.id, e.id)
				}
			}
			if in.move {
				g.moves = append(g.moves, [2]int{d.id, in.uses[0].id})
			}
		}
	}
	return g
}

func (g *graph) separate(a, b int) {
	if a != b {
		g.neighbors[a].put(b)
		g.neighbors[b].put(a)
	}
}

// joinMoves makes the registers of a copy the same where they do not hold two values at a time.
// Those with a condition on their numbers stay alone.
func (g *graph) joinMoves(f *Func) {
	fixed := map[int]bool{}
	for _, group := range append(f.adjacent, f.low) {
		for _, r := range group {
			fixed[r.id] = g.class == vector
		}
	}
	for _, m := range g.moves {
		a, b := g.of(m[0]), g.of(m[1])
		if a == b || g.neighbors[a].has(b) || fixed[a] || fixed[b] {
			continue
		}
		g.same[b] = a
		g.neighbors[b].each(func(n int) {
			g.neighbors[n].drop(b)
			g.separate(a, n)
		})
		g.neighbors[b] = newSet(len(g.number))
	}
}

// of returns the register that one has been joined with.
func (g *graph) of(id int) int {
	for g.same[id] != id {
		id = g.same[id]
	}
	return id
}

// free reports whether no neighbor of a register has the number.
func (g *graph) free(id, number int) bool {
	ok := true
	g.neighbors[id].each(func(n int) { ok = ok && g.number[n] != number })
	return ok
}

// assign gives every register a number, those with a condition first, and reports whether there were
// enough.
func (g *graph) assign(f *Func) bool {
	all := g.class.available()
	if g.class == vector && !g.assignSpecial(f, all) {
		return false
	}
	for _, id := range slices.Backward(g.order(len(all))) {
		at := slices.IndexFunc(all, func(n int) bool { return g.free(id, n) })
		if at < 0 {
			return false
		}
		g.number[id] = all[at]
	}
	for id := range g.number {
		g.number[id] = g.number[g.of(id)]
	}
	return true
}

// assignSpecial gives numbers to adjacent registers, and to those with low numbers.
func (g *graph) assignSpecial(f *Func, all []int) bool {
	for _, r := range f.low {
		at := slices.IndexFunc(all[:16], func(n int) bool { return g.free(r.id, n) })
		if at < 0 {
			return false
		}
		g.number[r.id] = at
	}
	for _, group := range f.adjacent {
		if g.number[group[0].id] >= 0 {
			continue
		}
		at := slices.IndexFunc(all, func(n int) bool {
			for i, r := range group {
				if !g.free(r.id, (n+i)%32) {
					return false
				}
			}
			return true
		})
		if at < 0 {
			return false
		}
		for i, r := range group {
			g.number[r.id] = (at + i) % 32
		}
	}
	return true
}

// order returns the registers without a number: those with few neighbors, which can always be
// assigned, before those whose neighbors must be assigned first.
func (g *graph) order(available int) (order []int) {
	degree := make([]int, len(g.number))
	left := newSet(len(g.number))
	for id, s := range g.neighbors {
		if g.number[id] < 0 && g.same[id] == id {
			left.put(id)
		}
		s.each(func(int) { degree[id]++ })
	}
	for {
		next := -1
		left.each(func(id int) {
			switch {
			case next < 0:
				next = id
			case degree[next] < available:
			case degree[id] < available || degree[id] < degree[next]:
				next = id
			}
		})
		if next < 0 {
			return order
		}
		left.drop(next)
		order = append(order, next)
		g.neighbors[next].each(func(n int) { degree[n]-- })
	}
}

// Text returns the function in the syntax of Go's assembler.
func (f *Func) Text() (string, error) {
	f.insts = append(f.entry, f.insts...)
	f.entry = nil
	f.removeUnused()
	if f.fault != nil {
		return "", f.fault
	}
	f.split()
	var assigned [2][]int
	for _, c := range []class{general, vector} {
		g := f.graph(c)
		if f.fault != nil {
			return "", f.fault
		}
		g.joinMoves(f)
		enough := g.assign(f)
		if !enough { // joined registers live longer
			g = f.graph(c)
			enough = g.assign(f)
		}
		if !enough {
			most := 0
			for _, s := range f.live(c) {
				n := 0
				s.each(func(int) { n++ })
				most = max(most, n)
			}
			return "", fmt.Errorf("arm64: %s: %d registers of class %d are needed at a time, %d are available", f.name,
				most, c, len(c.available()))
		}
		assigned[c] = g.number
	}
	number := func(r Reg) int { return assigned[r.class][r.id] }
	var b strings.Builder
	fmt.Fprintf(&b, "TEXT ·%s(SB), NOSPLIT, $0-%d\n", f.name, f.argBytes)
	for _, in := range f.insts {
		switch {
		case in.label != "":
			fmt.Fprintf(&b, "\n%s:\n", in.label)
		case in.move && number(in.defs[0]) == number(in.uses[0]):
		default:
			fmt.Fprintf(&b, "\t%s\n", in.text(number, number))
		}
	}
	return b.String(), nil
}
