package devicetest

import (
	"fmt"
	"math"
	"sync"

	"fspda/device"
	"fspda/internal/rng"
)

var vectorChecks = []check{
	{"copies", checkCopies},
	{"combine", checkCombine},
	{"combine in place", checkCombineInPlace},
	{"gather", checkGather},
	{"add difference", checkAddDiff},
	{"add differences", checkAddDiffs},
	{"combine and add differences", checkCombineDiffs},
	{"combine several", checkCombineAll},
	{"scatter and add", checkScatterAdd},
	{"move a copy", checkMoveCopy},
	{"ends of an edge", checkEnds},
	{"adamw", checkAdamW},
	{"dot", checkDot},
	{"index", checkIndex},
	{"history", checkHistory},
	{"concurrent vectors", checkConcurrent},
	{"caller's bugs", checkPanics},
}

// coefficients include values that implementations may treat specially (1, 0), and some that
// float32 cannot represent.
var coefficients = []float64{1, 0.1, -2, 1e-3, 1. / 3, 0, -1, 0.7, 1e-40}

func checkCopies(f *field) {
	if f.d.Name() == "" {
		f.Errorf("the device has no name")
	}
	for _, n := range f.lengths() {
		x := f.d.NewVector(n)
		if x.Len() != n {
			f.Errorf("NewVector(%d) has length %d", n, x.Len())
		}
		equal(f, "a new vector", f.read(x), make([]float64, n))
		v := mixed("copies", n)
		x = f.vector(v)
		clear(v) // Write must have copied
		equal(f, "Write and Read", f.read(x), widen(mixed("copies", n)))
	}
}

// combination returns the expected result of Combine.
func combination(round arithmetic, n int, a []float64, v [][]float64) []float64 {
	sum := make([]float64, n)
	for k := range v {
		for i, x := range v[k] {
			if p := round(round(a[k]) * x); k == 0 {
				sum[i] = p
			} else {
				sum[i] = round(sum[i] + p)
			}
		}
	}
	return sum
}

// operands returns k vectors of n numbers on the device, as terms and for the reference.
func (f *field) operands(name string, k, n int) (terms []device.Term, a []float64, v [][]float64) {
	for j := range k {
		x := mixed(fmt.Sprint(name, j), n)
		a = append(a, coefficients[(j+n+k)%len(coefficients)])
		v = append(v, widen(x))
		terms = append(terms, device.Term{A: a[j], V: f.vector(x)})
	}
	return terms, a, v
}

func checkCombine(f *field) {
	for _, n := range f.lengths() {
		for k := range 9 {
			for _, first := range []float64{1, 0.3} {
				terms, a, v := f.operands("combine", k, n)
				if k > 0 {
					terms[0].A, a[0] = first, first
				}
				dst := f.vector(mixed("old", n))
				f.d.Combine(dst, terms...)
				equal(f, fmt.Sprintf("Combine of %d terms %v", k, a), f.read(dst), combination(f.round, n, a, v))
				for j, term := range terms {
					equal(f, "an operand of Combine afterwards", f.read(term.V), v[j])
				}
			}
		}
		f.done()
	}
}

func checkCombineInPlace(f *field) {
	for _, n := range []int{1, 7, 33, 1000, 1500} {
		for k := 1; k < 9; k++ {
			for at := range k {
				terms, a, v := f.operands("in place", k, n)
				if k > 2 { // one vector twice, besides dst
					terms[(at+1)%k].V, v[(at+1)%k] = terms[(at+2)%k].V, v[(at+2)%k]
				}
				f.d.Combine(terms[at].V, terms...)
				equal(f, fmt.Sprintf("Combine of %d terms into term %d", k, at), f.read(terms[at].V),
					combination(f.round, n, a, v))
			}
		}
	}
}

// masks returns indices of a vector of length n: some, none, all, and the ends.
func masks(n int) [][]uint32 {
	list := [][]uint32{subset("mask", n, 3), {}, subset("all", n, 1)}
	if n > 1 {
		list = append(list, []uint32{0}, []uint32{uint32(n - 1)}, []uint32{0, uint32(n - 1)})
	}
	return list
}

func checkGather(f *field) {
	for _, n := range f.lengths() {
		v := mixed("gather", n)
		src, dst := f.vector(v), f.vector(make([]float32, n))
		f.d.Gather(dst, src, nil)
		equal(f, "Gather of all", f.read(dst), widen(v))
		for _, at := range masks(n) {
			want := make([]float64, len(at))
			for j, i := range at {
				want[j] = float64(v[i])
			}
			dst := f.vector(make([]float32, len(at)))
			f.d.Gather(dst, src, f.d.NewIndex(at, nil))
			equal(f, fmt.Sprintf("Gather of %d coordinates of %d", len(at), n), f.read(dst), want)
		}
		equal(f, "src of Gather afterwards", f.read(src), widen(v))
		f.done()
	}
}

func checkAddDiff(f *field) {
	for _, n := range f.lengths() {
		for k := range 5 {
			for m, at := range masks(n) {
				idx := f.d.NewIndex(at, nil)
				if m == 2 { // all coordinates
					idx = nil
				}
				own, other := mixed("own", len(at)), mixed("other", len(at))
				terms, a, v := f.operands("diff", k, n)
				p, q := f.vector(own), f.vector(other)
				f.d.AddDiff(p, q, idx, terms...)
				for l := range terms {
					for j, i := range at {
						diff := f.round(float64(own[j]) - float64(other[j]))
						v[l][i] = f.round(v[l][i] + f.round(f.round(a[l])*diff))
					}
					equal(f, fmt.Sprintf("AddDiff of %d coordinates of %d, term %d of %d", len(at), n, l, k),
						f.read(terms[l].V), v[l])
				}
				equal(f, "own of AddDiff afterwards", f.read(p), widen(own))
				equal(f, "other of AddDiff afterwards", f.read(q), widen(other))
			}
		}
		f.done()
	}
}

func checkAddDiffs(f *field) {
	for _, n := range f.lengths() {
		for _, k := range []int{0, 1, 2, 6, 7, 13} {
			others, a, v := f.operands("others", k, n)
			to, b, w := f.operands("to", k%4, n)
			own := mixed("own", n)
			p, sum, start := f.vector(own), make([]float64, n), device.Term{}
			if k%2 == 1 { // start is also written
				start = device.Term{A: -0.7, V: to[0].V}
				for i, x := range w[0] {
					sum[i] = f.round(f.round(start.A) * x)
				}
				others[0].V, v[0] = to[0].V, w[0]
			}
			for l := range v {
				for i, x := range v[l] {
					sum[i] = f.round(sum[i] + f.round(f.round(a[l])*f.round(float64(own[i])-x)))
				}
			}
			f.d.AddDiffs(start, p, others, to...)
			for l := range to {
				for i, s := range sum {
					w[l][i] = f.round(w[l][i] + f.round(f.round(b[l])*s))
				}
				equal(f, fmt.Sprintf("AddDiffs of %d vectors of %d, term %d", k, n, l), f.read(to[l].V), w[l])
			}
			equal(f, "own of AddDiffs afterwards", f.read(p), widen(own))
		}
		f.done()
	}
}

// checkCombineAll compares the fused pass with the passes that define it. A combination reads
// and overwrites vectors that the ones before it wrote and read.
func checkCombineAll(f *field) {
	for _, n := range f.lengths() {
		for _, k := range []int{0, 1, 2, 4, 7} {
			var want [][]float64
			for pass := range 2 {
				terms, _, _ := f.operands("terms", k, n)
				a, b, c := f.vector(mixed("a", n)), f.vector(mixed("b", n)), f.vector(mixed("c", n))
				all := []device.Combination{
					{Dst: a, Terms: append([]device.Term{{A: 0.9, V: a}, {A: 1, V: c}}, terms...)},
					{Dst: b, Terms: []device.Term{{A: 1, V: b}, {A: -0.3, V: a}}},
					{Dst: c, Terms: terms},
					{Dst: a, Terms: []device.Term{{A: 0.5, V: a}, {A: -1, V: b}, {A: 1, V: c}}},
				}
				if pass == 1 {
					f.d.CombineAll(all...)
				}
				for _, c := range all[:len(all)*(1-pass)] {
					f.d.Combine(c.Dst, c.Terms...)
				}
				for i, v := range []device.Vector{a, b, c} {
					if got := f.read(v); pass == 0 {
						want = append(want, widen(got))
					} else {
						equal(f, fmt.Sprintf("CombineAll of %d numbers, %d terms: vector %d", n, k, i), got, want[i])
					}
				}
			}
			f.done()
		}
	}
	f.d.CombineAll()
}

// checkCombineDiffs compares the fused pass with the two passes that define it, with dst among the
// combined vectors or separate.
func checkCombineDiffs(f *field) {
	for _, n := range f.lengths() {
		for _, k := range []int{0, 1, 2, 6, 7} {
			var want [][]float64
			for pass := range 2 {
				base, _, _ := f.operands("base", (k+n)%8, n)
				others, _, _ := f.operands("others", k, n)
				to, _, _ := f.operands("to", k%4, n)
				dst, start := device.Term{A: -0.3, V: f.vector(mixed("dst", n))}, device.Term{}
				if len(base) > 0 && k%2 == 0 {
					dst.V = base[len(base)/2].V
				}
				own := f.vector(mixed("own", n))
				if len(base) > 1 && k%2 == 1 {
					own = base[0].V
				}
				if k > 1 {
					start = device.Term{A: 0.7, V: f.vector(mixed("start", n))}
				}
				if pass == 0 {
					f.d.Combine(dst.V, base...)
					f.d.AddDiffs(start, own, others, append([]device.Term{dst}, to...)...)
				} else {
					f.d.CombineDiffs(dst, base, start, own, others, to...)
				}
				for i, term := range append(append([]device.Term{dst, {V: own}}, to...), base...) {
					if got := f.read(term.V); pass == 0 {
						want = append(want, widen(got))
					} else {
						equal(f, fmt.Sprintf("CombineDiffs of %d numbers, %d others: vector %d", n, k, i), got, want[i])
					}
				}
			}
			f.done()
		}
	}
}

func checkMoveCopy(f *field) {
	for _, n := range f.lengths() {
		for l, at := range masks(n) {
			for two := range 2 {
				x, y, c := mixed("v", n), mixed("w", n), mixed("copy", n)
				idx := f.d.NewIndex(at, nil)
				if l%len(masks(n)) == 2 { // all coordinates
					idx = nil
				}
				var w device.Vector
				if two == 1 {
					w = f.vector(y)
				}
				q, moved := f.d.NewVector(len(at)), f.vector(c)
				f.d.MoveCopy(q, moved, f.vector(x), w, idx)
				moves, copies := make([]float64, len(at)), widen(c)
				for j, i := range at {
					moves[j] = float64(x[i])
					if two == 1 {
						moves[j] = f.round(moves[j] + float64(y[i]))
					}
					moves[j] = f.round(moves[j] - copies[i])
					copies[i] = f.round(copies[i] + moves[j])
				}
				what := fmt.Sprintf("MoveCopy of %d vectors at %d of %d coordinates", 1+two, len(at), n)
				equal(f, what+": the moves", f.read(q), moves)
				equal(f, what+": the copy", f.read(moved), copies)
			}
		}
		f.done()
	}
}

func checkScatterAdd(f *field) {
	for _, n := range f.lengths() {
		for _, k := range []int{0, 1, 2, 40} {
			sum := widen(mixed("dst", n))
			dst := f.vector(mixed("dst", n))
			var parts []device.SparseTerm
			for l := range k {
				at := masks(n)[l%len(masks(n))]
				values, a := mixed(fmt.Sprint("part", l), len(at)), coefficients[l%len(coefficients)]
				p := device.SparseTerm{A: a, V: f.vector(values), Idx: f.d.NewIndex(at, nil)}
				if l%len(masks(n)) == 2 { // all coordinates
					p.Idx = nil
				}
				parts = append(parts, p)
				for j, i := range at {
					sum[i] = f.round(sum[i] + f.round(f.round(a)*float64(values[j])))
				}
			}
			f.d.ScatterAdd(dst, parts...)
			equal(f, fmt.Sprintf("ScatterAdd of %d parts to %d numbers", k, n), f.read(dst), sum)
		}
		f.done()
	}
}

// checkEnds checks that two agents that swap own and other add exact negatives to zeros.
func checkEnds(f *field) {
	for _, n := range []int{1, 9, 67, 4099} {
		p, q := f.vector(normal("p", n)), f.vector(normal("q", n))
		odd := make([]uint32, n)
		for i := range odd {
			odd[i] = uint32(2*i + 1)
		}
		for _, idx := range []device.Index{nil, f.d.NewIndex(odd, nil)} {
			length := n
			if idx != nil {
				length = 2 * n
			}
			left, right := f.vector(make([]float32, length)), f.vector(make([]float32, length))
			f.d.AddDiff(p, q, idx, device.Term{A: 0.3, V: left})
			f.d.AddDiff(q, p, idx, device.Term{A: 0.3, V: right})
			negative := widen(f.read(right))
			for i, v := range negative {
				if v != 0 {
					negative[i] = -v
				}
			}
			equal(f, "AddDiff at one end against the other", f.read(left), negative)
		}
	}
}

// checkAdamW takes two steps from averages that are not zero, with and without weight decay.
func checkAdamW(f *field) {
	for _, n := range f.lengths() {
		for _, decay := range []float64{0, 0.01} { // decay limits most mean squares
			m, v, x := widen(normal("m", n)), widen(normal("v", n)), widen(mixed("x", n))
			for i := range v {
				v[i] *= v[i]
				v[i] = float64(float32(v[i]))
			}
			on := func(w []float64) device.Vector {
				host := make([]float32, n)
				for i, y := range w {
					host[i] = float32(y)
				}
				return f.vector(host)
			}
			first, second, at := on(m), on(v), on(x)
			for step := range 2 {
				grad := mixed(fmt.Sprint("g", step), n)
				g := f.vector(grad)
				a := device.Adam{Beta1: 0.9, Rest1: 1 - 0.9, Beta2: 0.999, Rest2: 1 - 0.999, Scale1: 1 / 0.19,
					Scale2: 31.6, Eps: 1e-8, Decay: decay, Limit: 10 * decay}
				f.d.AdamW(a, g, first, second, at)
				want := make([]float64, n)
				for i := range want {
					want[i], m[i], v[i] = adamW(f.round, a, float64(grad[i]), m[i], v[i], x[i])
				}
				equal(f, fmt.Sprintf("AdamW of %d numbers, direction of step %d", n, step), f.read(g), want)
				equal(f, "the mean of AdamW", f.read(first), m)
				equal(f, "the mean square of AdamW", f.read(second), v)
				equal(f, "x of AdamW afterwards", f.read(at), x)
			}
		}
		checkAdamWThen(f, n)
		f.done()
	}
}

// checkAdamWThen compares a step with combinations behind it with the passes that define it: those
// read the direction and the averages, write the point of the step, and may have many terms.
func checkAdamWThen(f *field, n int) {
	a := device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.99, Rest2: 0.01, Scale1: 2, Scale2: 3, Eps: 1e-8, Decay: 0.1}
	square := normal("v", n)
	for i, v := range square {
		square[i] = v * v
	}
	for _, terms := range []int{2, 9} {
		vectors := func() (v [5]device.Vector) {
			for i, values := range [][]float32{normal("g", n), normal("m", n), square, mixed("x", n), normal("y", n)} {
				v[i] = f.vector(values)
			}
			return v
		}
		then := func(v [5]device.Vector) []device.Combination {
			first := device.Combination{Dst: v[3], Terms: []device.Term{{A: 1, V: v[3]}, {A: -0.3, V: v[0]}}}
			second := device.Combination{Dst: v[4]}
			for k := range terms {
				second.Terms = append(second.Terms, device.Term{A: 0.5 - 0.1*float64(k), V: v[(k+1)%5]})
			}
			return []device.Combination{first, second}
		}
		one, other := vectors(), vectors()
		f.d.AdamW(a, one[0], one[1], one[2], one[3])
		for _, c := range then(one) {
			f.d.Combine(c.Dst, c.Terms...)
		}
		f.d.AdamW(a, other[0], other[1], other[2], other[3], then(other)...)
		for i := range one {
			equal(f, fmt.Sprintf("AdamW of %d numbers with combinations of %d terms: vector %d", n, terms, i),
				f.read(other[i]), widen(f.read(one[i])))
		}
	}
}

func checkDot(f *field) {
	for _, n := range f.lengths() {
		a, b := normal("a", n), normal("b", n)
		sum, size := 0.0, 0.0
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
			size += math.Abs(float64(a[i]) * float64(b[i]))
		}
		x, y := f.vector(a), f.vector(b)
		got := f.d.Dot(x, y)
		if bound := float64(n+1) * 0x1p-53 * size; math.Abs(got-sum) > 2*bound {
			f.Errorf("Dot of %d numbers is %v, want %v within %v", n, got, sum, 2*bound)
		}
		for range 3 {
			if again := f.d.Dot(x, y); math.Float64bits(again) != math.Float64bits(got) {
				f.Errorf("Dot of %d numbers is %v and then %v", n, got, again)
			}
		}
	}
	huge := f.vector([]float32{1e30, 1, -1e30, 1e-30})
	ones := f.vector([]float32{1e30, 1e-30, -1e30, math.MaxFloat32})
	if got, want := f.d.Dot(huge, ones), 2*float64(float32(1e30))*float64(float32(1e30)); math.Abs(
		got-want) > 1e-12*want {
		f.Errorf("Dot beyond the range of float32 is %v, want %v: it is to be accumulated in float64", got, want)
	}
	for _, v := range specials[4:7] {
		x := f.vector([]float32{1, v, 2})
		if got := f.d.Dot(x, f.vector([]float32{1, 1, 1})); !same(float32(got), v) {
			f.Errorf("Dot of 1, %v and 2 with ones is %v", v, got)
		}
	}
}

// checkIndex checks that an Index is a copy, and that reused memory holds only the new coordinates.
func checkIndex(f *field) {
	const n = 500
	v := normal("index", n)
	src := f.vector(v)
	var idx device.Index
	for _, every := range []int{7, 2, 30, 1, 400, 3} {
		at := subset("index", n, every)
		idx = f.d.NewIndex(at, idx)
		if idx.Len() != len(at) {
			f.Errorf("an Index of %d coordinates has length %d", len(at), idx.Len())
		}
		want := make([]float64, len(at))
		for j, i := range at {
			want[j] = float64(v[i])
			at[j] = 0 // NewIndex must have copied
		}
		dst := f.vector(make([]float32, len(at)))
		f.d.Gather(dst, src, idx)
		equal(f, "Gather through an Index in used memory", f.read(dst), want)
	}
}

// checkHistory applies a random sequence of operations on the device and on the float64 device. All
// combinations are averages, so that errors of single roundings do not grow.
func checkHistory(f *field) {
	const n, steps = 301, 200
	twin := &field{TB: f.TB, d: NewFloat64()}
	s := rng.New(1, "history")
	var x, y []device.Vector
	for j := range 4 {
		v := normal(fmt.Sprint("history", j), n)
		x, y = append(x, f.vector(v)), append(y, twin.vector(v))
	}
	for range steps {
		i, j, k := s.IntN(4), s.IntN(4), s.IntN(4)
		a := s.Float64()
		if at := subset(fmt.Sprint(i, j, k), n, 1+s.IntN(9)); i != j && s.IntN(2) == 0 {
			for _, w := range []struct {
				d device.Device
				v []device.Vector
			}{{f.d, x}, {twin.d, y}} {
				idx, own, other := w.d.NewIndex(at, nil), w.d.NewVector(len(at)), w.d.NewVector(len(at))
				w.d.Gather(own, w.v[i], idx)
				w.d.Gather(other, w.v[j], idx)
				w.d.AddDiff(own, other, idx, device.Term{A: -a, V: w.v[i]})
			}
			continue
		}
		f.d.Combine(x[i], device.Term{A: a, V: x[j]}, device.Term{A: 1 - a, V: x[k]})
		twin.d.Combine(y[i], device.Term{A: a, V: y[j]}, device.Term{A: 1 - a, V: y[k]})
	}
	for j := range x {
		want := y[j].(*Vector64).Data
		for i, got := range f.read(x[j]) {
			if math.Abs(float64(got)-want[i]) > steps*4*unit*64 { // the values are below 64
				f.Errorf("after %d operations element %d of vector %d is %v, in float64 %v", steps, i, j, got, want[i])
				return
			}
		}
	}
}

// checkConcurrent moves disjoint vectors from several goroutines: each gets the same result as in a
// serial run.
func checkConcurrent(f *field) {
	const workers, n = 8, 3000
	shared := f.d.NewVector(n)
	f.d.Write(shared, normal("shared", n))
	work := func(w int) ([]float32, float64) {
		x := f.d.NewVector(n)
		f.d.Write(x, normal(fmt.Sprint("worker", w), n))
		at := subset(fmt.Sprint(w), n, 5)
		idx := f.d.NewIndex(at, nil)
		own, other := f.d.NewVector(len(at)), f.d.NewVector(len(at))
		for range 5 {
			f.d.Combine(x, device.Term{A: 0.9, V: x}, device.Term{A: 0.1, V: shared})
			f.d.Gather(own, x, idx)
			f.d.Gather(other, shared, idx)
			f.d.AddDiff(own, other, idx, device.Term{A: -0.5, V: x})
		}
		got := make([]float32, n)
		f.d.Read(got, x)
		return got, f.d.Dot(x, shared)
	}
	var wg sync.WaitGroup
	var got [workers][]float32
	var dots [workers]float64
	for w := range workers {
		wg.Go(func() { got[w], dots[w] = work(w) })
	}
	wg.Wait()
	for w := range workers {
		want, dot := work(w)
		equal(f, fmt.Sprintf("worker %d concurrently and serially", w), got[w], widen(want))
		if math.Float64bits(dots[w]) != math.Float64bits(dot) {
			f.Errorf("worker %d: Dot is %v concurrently, %v serially", w, dots[w], dot)
		}
	}
}

// foreign is a vector and an index of no device.
type foreign struct{}

func (foreign) Len() int { return 4 }

func checkPanics(f *field) {
	d, v, none := f.d, f.d.NewVector, device.Term{}
	term := func(n int) device.Term { return device.Term{A: 1, V: v(n)} }
	terms := func(lengths ...int) (all []device.Term) {
		for _, n := range lengths {
			all = append(all, term(n))
		}
		return all
	}
	idx := d.NewIndex([]uint32{1, 3}, nil)
	part := func(n int, at device.Index) device.SparseTerm { return device.SparseTerm{A: 1, V: v(n), Idx: at} }
	for what, run := range map[string]func(){
		"Write of 3 into 4":                func() { d.Write(v(4), make([]float32, 3)) },
		"Write of 5 into 4":                func() { d.Write(v(4), make([]float32, 5)) },
		"Read of 4 into 3":                 func() { d.Read(make([]float32, 3), v(4)) },
		"Read of 4 into 5":                 func() { d.Read(make([]float32, 5), v(4)) },
		"Combine of a short term":          func() { d.Combine(v(4), terms(4, 3)...) },
		"Combine of a long term":           func() { d.Combine(v(4), term(5)) },
		"Combine of many terms, one short": func() { d.Combine(v(4), terms(4, 4, 4, 4, 4, 4, 3)...) },
		"Combine of a foreign vector":      func() { d.Combine(v(4), device.Term{A: 1, V: foreign{}}) },
		"Gather into a longer vector":      func() { d.Gather(v(5), v(4), nil) },
		"Gather of 2 into 3":               func() { d.Gather(v(3), v(4), idx) },
		"Gather beyond src":                func() { d.Gather(v(2), v(3), idx) },
		"Gather through a foreign index":   func() { d.Gather(v(4), v(9), foreign{}) },
		"AddDiff of two lengths":           func() { d.AddDiff(v(2), v(3), idx, term(4)) },
		"AddDiff of 3 for 2 coordinates":   func() { d.AddDiff(v(3), v(3), idx, term(4)) },
		"AddDiff beyond a term":            func() { d.AddDiff(v(2), v(2), idx, terms(4, 3)...) },
		"AddDiff of all to a longer term":  func() { d.AddDiff(v(4), v(4), nil, term(5)) },
		"AddDiffs of a short vector":       func() { d.AddDiffs(none, v(4), terms(4, 3), term(4)) },
		"AddDiffs from a long start":       func() { d.AddDiffs(term(5), v(4), nil, term(4)) },
		"AddDiffs to a long term":          func() { d.AddDiffs(none, v(4), nil, terms(4, 5)...) },
		"CombineAll of a short term":       func() { d.CombineAll(device.Combination{Dst: v(4), Terms: terms(4, 3)}) },
		"CombineAll to a short vector": func() {
			d.CombineAll(device.Combination{Dst: v(4)}, device.Combination{Dst: v(3), Terms: terms(3)})
		},
		"CombineDiffs of a short term":     func() { d.CombineDiffs(term(4), terms(4, 3), none, v(4), nil) },
		"CombineDiffs to a short vector":   func() { d.CombineDiffs(term(3), terms(4), none, v(4), terms(4)) },
		"CombineDiffs of a long vector":    func() { d.CombineDiffs(term(4), terms(4), term(4), v(4), terms(5)) },
		"ScatterAdd of 3 at 2 coordinates": func() { d.ScatterAdd(v(9), part(3, idx)) },
		"ScatterAdd beyond dst":            func() { d.ScatterAdd(v(3), part(2, idx)) },
		"ScatterAdd of a longer vector":    func() { d.ScatterAdd(v(3), part(4, nil)) },
		"MoveCopy to a longer vector":      func() { d.MoveCopy(v(2), v(9), v(10), nil, idx) },
		"MoveCopy to a shorter sum":        func() { d.MoveCopy(v(2), v(9), v(9), v(8), idx) },
		"MoveCopy of 3 at 2 coordinates":   func() { d.MoveCopy(v(3), v(9), v(9), nil, idx) },
		"MoveCopy beyond the copy":         func() { d.MoveCopy(v(2), v(3), v(3), nil, idx) },
		"AdamW of a short mean":            func() { d.AdamW(device.Adam{}, v(4), v(3), v(4), v(4)) },
		"AdamW of a long mean square":      func() { d.AdamW(device.Adam{}, v(4), v(4), v(5), v(4)) },
		"AdamW at a short point":           func() { d.AdamW(device.Adam{}, v(4), v(4), v(4), v(3)) },
		"AdamW and a short vector": func() {
			d.AdamW(device.Adam{}, v(4), v(4), v(4), v(4), device.Combination{Dst: v(3), Terms: terms(3)})
		},
		"AdamW and a long term": func() {
			d.AdamW(device.Adam{}, v(4), v(4), v(4), v(4), device.Combination{Dst: v(4), Terms: terms(4, 5)})
		},
		"Dot of two lengths": func() { d.Dot(v(4), v(5)) },
	} {
		panics(f, what, run)
	}
}
