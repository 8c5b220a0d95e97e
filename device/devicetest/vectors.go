package devicetest

import (
	"fmt"
	"math"
	"sync"

	"fspda/device"
	"fspda/internal/rng"
)

var vectorChecks = append([]check{
	{"copies", checkCopies},
	{"ends of an edge", checkEnds},
	{"dot", checkDot},
	{"orthogonalize", checkOrthogonalize},
	{"index", checkIndex},
	{"history", checkHistory},
	{"concurrent vectors", checkConcurrent},
	{"caller's bugs", checkPanics},
	{"caller's bugs with matrices", checkProductPanics},
}, twinChecks()...)

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
			f.d.Do(device.AddDiff(p, q, idx, device.Term{A: 0.3, V: left}))
			f.d.Do(device.AddDiff(q, p, idx, device.Term{A: 0.3, V: right}))
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

func checkDot(f *field) {
	for _, n := range f.lengths() {
		a, b := normal("a", n), normal("b", n)
		sum, size := 0.0, 0.0
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
			size += math.Abs(float64(a[i]) * float64(b[i]))
		}
		x, y := f.vector(a), f.vector(b)
		got := device.InnerProduct(f.d, x, y)
		if bound := float64(n+1) * 0x1p-53 * size; math.Abs(got-sum) > 2*bound {
			f.Errorf("Dot of %d numbers is %v, want %v within %v", n, got, sum, 2*bound)
		}
		for range 3 {
			if again := device.InnerProduct(f.d, x, y); math.Float64bits(again) != math.Float64bits(got) {
				f.Errorf("Dot of %d numbers is %v and then %v", n, got, again)
			}
		}
	}
	huge := f.vector([]float32{1e30, 1, -1e30, 1e-30})
	ones := f.vector([]float32{1e30, 1e-30, -1e30, math.MaxFloat32})
	if got, want := device.InnerProduct(f.d, huge, ones), 2*float64(float32(1e30))*float64(float32(1e30)); math.Abs(
		got-want) > 1e-12*want {
		f.Errorf("Dot beyond the range of float32 is %v, want %v: it is to be accumulated in float64", got, want)
	}
	for _, v := range specials[4:7] {
		x := f.vector([]float32{1, v, 2})
		if got := device.InnerProduct(f.d, x, f.vector([]float32{1, 1, 1})); !same(float32(got), v) {
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
		f.d.Do(device.Gather(dst, src, idx))
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
				w.d.Do(device.Gather(own, w.v[i], idx))
				w.d.Do(device.Gather(other, w.v[j], idx))
				w.d.Do(device.AddDiff(own, other, idx, device.Term{A: -a, V: w.v[i]}))
			}
			continue
		}
		f.d.Do(device.Combine(x[i], device.Term{A: a, V: x[j]}, device.Term{A: 1 - a, V: x[k]}))
		twin.d.Do(device.Combine(y[i], device.Term{A: a, V: y[j]}, device.Term{A: 1 - a, V: y[k]}))
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
			f.d.Do(device.Combine(x, device.Term{A: 0.9, V: x}, device.Term{A: 0.1, V: shared}))
			f.d.Do(device.Gather(own, x, idx))
			f.d.Do(device.Gather(other, shared, idx))
			f.d.Do(device.AddDiff(own, other, idx, device.Term{A: -0.5, V: x}))
		}
		got := make([]float32, n)
		f.d.Read(got, x)
		return got, device.InnerProduct(f.d, x, shared)
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

func (foreign) Len() int   { return 4 }
func (foreign) Bound() int { return 4 }

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
		"Write of 3 into 4": func() { d.Write(v(4), make([]float32, 3)) },
		"Write of 5 into 4": func() { d.Write(v(4), make([]float32, 5)) },
		"Read of 4 into 3":  func() { d.Read(make([]float32, 3), v(4)) },
		"Read of 4 into 5":  func() { d.Read(make([]float32, 5), v(4)) },
	} {
		panics(f, what, run)
	}
	var sum float64
	for what, op := range map[string]device.Op{
		"Combine of a short term":          device.Combine(v(4), terms(4, 3)...),
		"Combine of a long term":           device.Combine(v(4), term(5)),
		"Combine of many terms, one short": device.Combine(v(4), terms(4, 4, 4, 4, 4, 4, 3)...),
		"Combine of a foreign vector":      device.Combine(v(4), device.Term{A: 1, V: foreign{}}),
		"Gather into a longer vector":      device.Gather(v(5), v(4), nil),
		"Gather of 2 into 3":               device.Gather(v(3), v(4), idx),
		"Gather beyond src":                device.Gather(v(2), v(3), idx),
		"Gather through a foreign index":   device.Gather(v(4), v(9), foreign{}),
		"AddDiff of two lengths":           device.AddDiff(v(2), v(3), idx, term(4)),
		"AddDiff of 3 for 2 coordinates":   device.AddDiff(v(3), v(3), idx, term(4)),
		"AddDiff beyond a term":            device.AddDiff(v(2), v(2), idx, terms(4, 3)...),
		"AddDiff of all to a longer term":  device.AddDiff(v(4), v(4), nil, term(5)),
		"AddDiffs of a short vector":       device.AddDiffs(none, v(4), terms(4, 3), term(4)),
		"AddDiffs from a long start":       device.AddDiffs(term(5), v(4), nil, term(4)),
		"AddDiffs to a long term":          device.AddDiffs(none, v(4), nil, terms(4, 5)...),
		"ScatterAdd of 3 at 2 coordinates": device.ScatterAdd(v(9), part(3, idx)),
		"ScatterAdd beyond dst":            device.ScatterAdd(v(3), part(2, idx)),
		"ScatterAdd of a longer vector":    device.ScatterAdd(v(3), part(4, nil)),
		"MoveCopy to a longer vector":      device.MoveCopy(v(2), v(9), v(10), nil, idx),
		"MoveCopy to a shorter sum":        device.MoveCopy(v(2), v(9), v(9), v(8), idx),
		"MoveCopy of 3 at 2 coordinates":   device.MoveCopy(v(3), v(9), v(9), nil, idx),
		"MoveCopy beyond the copy":         device.MoveCopy(v(2), v(3), v(3), nil, idx),
		"AdamW of a short mean":            device.AdamW(device.Adam{}, v(4), v(3), v(4), v(4)),
		"AdamW of a long mean square":      device.AdamW(device.Adam{}, v(4), v(4), v(5), v(4)),
		"AdamW at a short point":           device.AdamW(device.Adam{}, v(4), v(4), v(4), v(3)),
		"Dot of two lengths":               device.Dot(&sum, v(4), v(5)),
	} {
		refuses(f, what, op)
	}
}

func checkProductPanics(f *field) {
	v, same := f.d.NewVector, f.d.NewVector(6)
	for what, op := range map[string]device.Op{
		"Multiply of 2×2 and 1×2": device.Multiply(device.Rows(v(4), 0, 2, 2), 1, device.Rows(v(4), 0, 2, 2),
			device.Rows(v(4), 0, 1, 2), 0),
		"Multiply beyond a factor": device.Multiply(device.Rows(v(4), 0, 2, 2), 1, device.Rows(v(4), 1, 2, 2),
			device.Rows(v(4), 0, 2, 2), 0),
		"Multiply into repeated numbers": device.Multiply(device.Matrix{V: v(4), View: device.View{Rows: 2, Cols: 2,
			Down: 1, Right: 1}}, 1, device.Rows(v(4), 0, 2, 2), device.Rows(v(4), 0, 2, 2), 0),
		"Multiply into a factor": device.Multiply(device.Rows(same, 0, 2, 2), 1, device.Rows(same, 2, 2, 2),
			device.Rows(v(4), 0, 2, 2), 0),
		"Orthogonalize beyond its vector": device.Orthogonalize(v(6), device.Orthogonal{
			Block: device.Block{Offset: 1, Rows: 2, Cols: 3}}),
		"AdamW within a range beyond its vectors": device.AdamW(device.Adam{}, v(3), v(3), v(3), v(3)).Within(
			[]device.Range{{From: 1, To: 4}}),
		"Gather within a range": device.Gather(v(3), v(3), nil).Within([]device.Range{{From: 0, To: 1}}),
	} {
		refuses(f, what, op)
	}
}

// refuses checks that an operation panics, also behind another one, which is then not computed.
func refuses(f *field, what string, op device.Op) {
	panics(f, what, func() { f.d.Do(op) })
	changed := f.vector(normal("unchanged", 4))
	panics(f, what+", behind another", func() { f.d.Do(device.Combine(changed), op) })
	if op.Kind != device.KindCombine && op.Idx != (foreign{}) { // vectors of others are found on the way
		equal(f, "a vector after "+what, f.read(changed), widen(normal("unchanged", 4)))
	}
}
