package vec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

// testCase is a function on vectors of one length, some of which it writes. Its result is compared
// as well.
type testCase struct {
	name    string
	vectors int
	run     func(v [][]float32) float64
}

// allCases are all kernels that pass over vectors, outputs first.
func allCases() []testCase {
	nothing := func(f func(v [][]float32)) func(v [][]float32) float64 {
		return func(v [][]float32) float64 { f(v); return 0 }
	}
	cases := []testCase{
		{"adds", 3, nothing(func(v [][]float32) { adds(v[0], v[1], v[2], false) })},
		{"addRow", 2, nothing(func(v [][]float32) { AddRow(v[0], v[1]) })},
		{"relus", 2, nothing(func(v [][]float32) { ReLUs(v[0], v[1], false) })},
		{"relus in place", 1, nothing(func(v [][]float32) { ReLUs(v[0], v[0], false) })},
		{"reluGrads", 3, nothing(func(v [][]float32) { ReLUGrads(v[0], v[1], v[2], false) })},
		{"reluGrads into dy", 2, nothing(func(v [][]float32) { ReLUGrads(v[0], v[1], v[0], false) })},
		{"sigmoids", 2, nothing(func(v [][]float32) { Sigmoids(v[0], v[1]) })},
		{"sigmoids in place", 1, nothing(func(v [][]float32) { Sigmoids(v[0], v[0]) })},
		{"sigmoidGrads", 3, nothing(func(v [][]float32) { SigmoidGrads(v[0], v[1], v[2], false) })},
		{"sigmoidGrads into y", 2, nothing(func(v [][]float32) { SigmoidGrads(v[0], v[0], v[1], false) })},
		{"swishes", 3, nothing(func(v [][]float32) { Swishes(v[0], v[1], v[2]) })},
		{"swishGrads", 6, nothing(func(v [][]float32) { SwishGrads(v[0], v[1], v[2], v[3], v[4], v[5]) })},
		{"addDiffAll1", 3, nothing(func(v [][]float32) { addDiffAll1(v[1], v[2], -0.3, v[0]) })},
		{"addDiffAll1 of itself", 2, nothing(func(v [][]float32) { addDiffAll1(v[0], v[1], -0.3, v[0]) })},
		{"addDiffAll2", 4, nothing(func(v [][]float32) { addDiffAll2(v[2], v[3], -0.3, v[0], 0.7, v[1]) })},
		{"addDiffAll2 of itself", 3, nothing(func(v [][]float32) { addDiffAll2(v[0], v[2], -0.3, v[0], 0.7, v[1]) })},
		{"plusTimes", 2, nothing(func(v [][]float32) { plusTimes(v[0], 0.3, v[1]) })},
		{"dot", 2, func(v [][]float32) float64 { return dot(v[0], v[1]) }},
		{"dot of itself", 1, func(v [][]float32) float64 { return dot(v[0], v[0]) }},
	}
	for terms := 1; terms <= maxTerms; terms++ {
		for into := range terms + 1 { // out of place, or into one of the terms
			cases = append(cases, testCase{fmt.Sprintf("combine %d into %d", terms, into), terms + 1,
				nothing(func(v [][]float32) {
					var c combination
					for k := range terms {
						c = c.plus(0.9-0.4*float32(k), v[k+1])
					}
					combine(v[into], &c, false)
				})})
		}
	}
	return slices.Concat(cases, nonTemporalCases(), diffCases(), diffCombinationCases())
}

// nonTemporalCases are the kernels that can use non-temporal stores, doing so.
func nonTemporalCases() []testCase {
	cases := []testCase{
		{"adds by non-temporal stores", 3, func(v [][]float32) float64 { adds(v[0], v[1], v[2], true); return 0 }},
		{"relus by non-temporal stores", 2, func(v [][]float32) float64 { ReLUs(v[0], v[1], true); return 0 }},
		{"reluGrads by non-temporal stores", 3, func(v [][]float32) float64 {
			ReLUGrads(v[0], v[1], v[2], true)
			return 0
		}},
		{"sigmoidGrads by non-temporal stores", 3, func(v [][]float32) float64 {
			SigmoidGrads(v[0], v[1], v[2], true)
			return 0
		}},
	}
	for terms := 1; terms <= maxTerms; terms++ {
		cases = append(cases, testCase{fmt.Sprintf("combine %d by non-temporal stores", terms), terms + 1,
			func(v [][]float32) float64 {
				var c combination
				for k := range terms {
					c = c.plus(0.9-0.4*float32(k), v[k+1])
				}
				combine(v[0], &c, true)
				return 0
			}})
	}
	return cases
}

// diffCases are sums of differences. The own vector, the start and a term may be the same, as may
// one of the others.
func diffCases() (cases []testCase) {
	for _, terms := range []int{0, 1, 3, maxTerms} {
		for same := range 3 {
			sum := func(v [][]float32) *differences {
				s := &differences{start: v[2], scale: 0.6, own: v[3]}
				if same == 1 {
					s.start, s.own = v[0], v[1]
				}
				for k := range terms {
					s.others = s.others.plus(0.9-0.4*float32(k), v[(k+4)%(4+terms-same/2)])
				}
				return s
			}
			for to, run := range []func(v [][]float32){
				func(v [][]float32) { sumDiffs(v[0], sum(v)) },
				func(v [][]float32) { addDiffs1(v[0], 0.3, sum(v)) },
				func(v [][]float32) { addDiffs2(v[0], 0.3, v[1], -0.8, sum(v)) },
			} {
				cases = append(cases, testCase{fmt.Sprintf("%d differences to %d, same %d", terms, to, same), 4 + terms,
					func(v [][]float32) float64 {
						for i := 0; i < len(v[0]); i += vecBlock {
							w := make([][]float32, len(v))
							for k := range v {
								w[k] = v[k][i:min(i+vecBlock, len(v[k]))]
							}
							run(w)
						}
						return 0
					}})
			}
		}
	}
	return cases
}

// diffCombinationCases are combinations with differences. The result may go into one of the terms,
// and the first term may be the own vector.
func diffCombinationCases() (cases []testCase) {
	for _, k := range [][3]int{{1, 0, 0}, {1, 1, 0}, {3, 1, 1}, {2, 3, 2}, {maxTerms, maxTerms, maxTargets}} {
		for kind := range 3 {
			vectors := 3 + k[0] + k[1] + k[2]
			cases = append(cases, testCase{fmt.Sprintf("combination of %d, kind %d", k, kind), vectors,
				func(v [][]float32) float64 {
					m, rest := diffCombination{own: v[1], factor: -0.4}, v[3:]
					if kind > 0 {
						m.start, m.scale = v[2], 0.6
					}
					for j, c := range []*combination{&m.base, &m.others, &m.targets} {
						for l := range k[j] {
							c.v[l], c.a[l] = rest[l], 0.9-0.4*float32(l)
						}
						c.terms, rest = k[j], rest[k[j]:]
					}
					if m.run(v[0]); kind == 2 {
						m.own = v[3]
						m.base.v[k[0]-1] = v[0]
						m.run(v[0])
					}
					return 0
				}})
		}
	}
	return cases
}

// specials are numbers for which rounding, signs and comparisons may go wrong.
var specials = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), 0x1p-149, -0x1p-149, 0x1.fffffcp-127, 0x1p-126, -0x1.5p-70, math.MaxFloat32, -math.MaxFloat32,
	88.7, -88.7, 104, -104, 149.9, -151}

// randomNumbers returns n numbers of mixed magnitude; share percent of them are special.
func randomNumbers(seed uint64, n, share int) []float32 {
	r, v := rng.New(seed, "mixed"), make([]float32, n)
	for i := range v {
		v[i] = float32(math.Ldexp(2*float64(r.Float32())-1, r.IntN(12)-5))
		if r.IntN(100) < share {
			v[i] = specials[r.IntN(len(specials))]
		}
	}
	return v
}

// checkTwins compares a case with every instruction set with Go: each bit of every vector, and the
// words around it. Each vector has its own offset from a cache line.
func checkTwins(t *testing.T, c testCase, n, offset int, seed uint64, share int) {
	t.Helper()
	const margin = 16
	words := func() (all, v [][]float32) {
		for k := range c.vectors {
			a, skip := kernel.Aligned(n+3*margin), margin+(offset+5*k)%16
			copy(a, randomNumbers(seed+uint64(k), len(a), share))
			all, v = append(all, a), append(v, a[skip:skip+n])
		}
		return all, v
	}
	all, v := words()
	var want float64
	isa.With(isa.Go, func() { want = c.run(v) })
	for _, code := range isa.Available() {
		got, v := words()
		var result float64
		isa.With(code, func() { result = c.run(v) })
		if math.Float64bits(result) != math.Float64bits(want) && (result == result || want == want) {
			t.Fatalf("%s in %v, %d numbers, offset %d: %v, want %v", c.name, code, n, offset, result, want)
		}
		for k := range all {
			for i, w := range all[k] {
				if !kerneltest.Same(got[k][i], w) {
					t.Fatalf("%s in %v, %d numbers, offset %d: word %d of %d of vector %d is %x, want %x",
						c.name, code, n, offset, i, len(all[k]), k, got[k][i], w)
				}
			}
		}
	}
}

// testLengths are lengths around registers, unrolled loops and blocks.
func testLengths() []int {
	n := []int{95, 96, 97, 127, 128, 129, 255, 1000, vecBlock - 1, vecBlock, vecBlock + 1, 2*vecBlock + 17}
	for i := range 82 {
		n = append(n, i)
	}
	return n
}

func TestVecTwins(t *testing.T) {
	for _, c := range allCases() {
		for i, n := range testLengths() {
			checkTwins(t, c, n, i%16, uint64(i), 0)
			checkTwins(t, c, n, (i+7)%16, uint64(i), 30)
		}
		for offset := range 16 {
			checkTwins(t, c, 77, offset, 3, 5)
		}
	}
}

func FuzzVec(f *testing.F) {
	f.Add(uint8(0), uint16(17), uint8(3), uint64(1), uint8(20))
	f.Add(uint8(8), uint16(5000), uint8(15), uint64(2), uint8(0))
	f.Fuzz(func(t *testing.T, which uint8, n uint16, offset uint8, seed uint64, share uint8) {
		cases := allCases()
		checkTwins(t, cases[int(which)%len(cases)], int(n)%10000, int(offset)%16, seed, int(share)%101)
	})
}

// The kernels over rows agree with their definitions in Go, for rows around registers and several
// of them.
func TestRowTwins(t *testing.T) {
	for i, n := range testLengths() {
		for _, rows := range []int{1, 2, 5} {
			if n > 0 && n*rows <= 3*vecBlock {
				rowTwins(t, n, rows, uint64(i), 10*(i%3))
			}
		}
	}
}

func FuzzRows(f *testing.F) {
	f.Add(uint16(10), uint8(255), uint64(1), uint8(2))
	f.Add(uint16(5000), uint8(1), uint64(1), uint8(0))
	f.Add(uint16(4), uint8(0xd5), uint64(14), uint8('>')) // a row whose largest numbers are zeros of both signs
	f.Fuzz(func(t *testing.T, n uint16, rows uint8, seed uint64, share uint8) {
		rowTwins(t, int(n)%5000+1, int(rows)%40+1, seed, int(share)%101)
	})
}

func rowTwins(t *testing.T, n, rows int, seed uint64, share int) {
	t.Helper()
	const margin = 16
	type result struct {
		tops, e, scaled, float, apart, slopes []float32
		sums                                  []float64
		columns                               []float32
	}
	x := randomNumbers(seed, rows*n, share)
	compute := func() (r result) {
		guarded := func(n int) []float32 { return randomNumbers(9, n+2*margin, 0) }
		stride := n + 3
		r = result{guarded(rows), guarded(rows * n), guarded(rows * n), guarded(rows * n), guarded(rows * stride),
			guarded(rows * stride), make([]float64, 2*rows), guarded(n)}
		tops, e := r.tops[margin:margin+rows], r.e[margin:margin+rows*n]
		rowMaxima(tops, x, n)
		expRows(e, r.sums[:rows], x, tops, n)
		timesRows(r.scaled[margin:margin+rows*n], e, r.sums[:rows], n)
		floatExpRows(r.float[margin:margin+rows*n], r.sums[rows:], x, tops, n)
		apart := r.apart[margin : margin+rows*stride]
		scaleRows(apart, r.float[margin:margin+rows*n], x[:rows], n, stride)
		slopeRows(r.slopes[margin:margin+rows*stride], apart, x, r.sums[:rows], n, stride)
		ColumnSums(r.columns[margin:margin+n], x, rows, n)
		return r
	}
	var want result
	isa.With(isa.Go, func() { want = compute() })
	for _, code := range isa.Available() {
		var got result
		isa.With(code, func() { got = compute() })
		for what, v := range map[string][2][]float32{"tops": {got.tops, want.tops}, "exponentials": {got.e, want.e},
			"scaled": {got.scaled, want.scaled}, "float32 exponentials": {got.float, want.float},
			"scaled rows apart": {got.apart, want.apart}, "slopes": {got.slopes, want.slopes},
			"column sums": {got.columns, want.columns}} {
			for i, w := range v[1] {
				if !kerneltest.Same(v[0][i], w) {
					t.Fatalf("%d rows of %d in %v: word %d of %s is %x, want %x", rows, n, code, i, what, v[0][i], w)
				}
			}
		}
		for i, w := range want.sums {
			if g := got.sums[i]; math.Float64bits(g) != math.Float64bits(w) && (g == g || w == w) {
				t.Fatalf("%d rows of %d in %v: sum %d is %v, want %v", rows, n, code, i, g, w)
			}
		}
	}
}

// The loops over selected coordinates agree with Go, in the cache and beyond, with words around
// everything that is written.
func TestSelectedTwins(t *testing.T) {
	for _, n := range []int{700, 1<<18 + 300} {
		for k := range 90 {
			selectedTwins(t, n, k, uint64(k))
		}
		selectedTwins(t, n, 699, 1)
		if n > 2*vecBlock {
			selectedTwins(t, n, 2*vecBlock+130, 2)
		}
	}
}

func selectedTwins(t *testing.T, n, k int, seed uint64) {
	t.Helper()
	r, chosen := rng.New(seed, "selected"), make([]uint32, k)
	for j := range chosen { // ascending, with the first and the last
		chosen[j] = uint32(j*(n-1)/max(1, k-1) + r.IntN(max(1, n/max(1, k)/2)))
		chosen[j] = min(chosen[j], uint32(n-1))
		if j > 0 && chosen[j] <= chosen[j-1] {
			chosen[j] = chosen[j-1] + 1
		}
	}
	if k > 0 && int(chosen[k-1]) >= n {
		return // too many to be distinct
	}
	own, other := kerneltest.Noise("own", k), kerneltest.Noise("other", k)
	compute := func() (all [][]float32) {
		v, w, dst := kerneltest.Noise("v", n+3), kerneltest.Noise("w", n+3), kerneltest.Noise("dst", k+5)
		gatherAt(dst[2:2+k], v[1:n+1], chosen)
		addDiffAt1(own, other, chosen, 0.3, v[1:n+1])
		addDiffAt2(own, other, chosen, -0.7, v[1:n+1], 0.2, w[2:n+2])
		for from, m := range []int{k / 3, k / 2} { // the coordinates after these are prefetched, but not changed
			scatterAdd(v[1:n+1], chosen[from*k/3:], m, own[from*k/3:], 0.6)
		}
		return [][]float32{v, w, dst}
	}
	var want [][]float32
	isa.With(isa.Go, func() { want = compute() })
	for _, code := range isa.Available() {
		var got [][]float32
		isa.With(code, func() { got = compute() })
		for v := range want {
			for i, w := range want[v] {
				if !kerneltest.Same(got[v][i], w) {
					t.Fatalf("%d of %d in %v: word %d of vector %d is %v, want %v", k, n, code, i, v, got[v][i], w)
				}
			}
		}
	}
}

// The loss and the score are the same with every instruction set, for many rows, and for rows
// longer than a block.
func TestLossTwins(t *testing.T) {
	for _, s := range [][2]int{{300, 10}, {7, 1000}, {2, vecBlock}, {2, vecBlock + 1}, {3, 2*vecBlock + 77}} {
		m, n := s[0], s[1]
		logits, labels := randomNumbers(1, m*n, 0), make([]float32, m)
		for i := range labels {
			labels[i] = float32(i * 7919 % n)
		}
		compute := func() []float32 {
			loss, grad, sums := make([]float32, 1), make([]float32, m*n), make([]float32, 3)
			in := [][]float32{logits, labels}
			if err := softmaxCrossEntropy(&kernel.Args{In: in, Out: [][]float32{loss, grad}, Dims: s[:]}); err != nil {
				t.Fatal(err)
			}
			if err := score(&kernel.Args{In: in, Out: [][]float32{sums}, Dims: s[:]}); err != nil {
				t.Fatal(err)
			}
			return append(append(loss, sums...), grad...)
		}
		var want []float32
		isa.With(isa.Go, func() { want = compute() })
		for _, code := range isa.Available() {
			isa.With(code, func() {
				for i, g := range compute() {
					if !kerneltest.Same(g, want[i]) {
						t.Fatalf("%d rows of %d in %v: word %d is %v, want %v", m, n, code, i, g, want[i])
					}
				}
			})
		}
	}
}
