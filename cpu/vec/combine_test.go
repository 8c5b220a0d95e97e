package vec

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// framed returns a vector of n random numbers between guard words, and a function that reports
// whether the guard words are unchanged.
func framed(name string, n int) (v *Vector, whole func() bool) {
	const margin = 16
	words := kerneltest.Noise(name, n+2*margin)
	old := append([]float32{}, words...)
	v = &Vector{Data: words[margin : margin+n : margin+n]}
	return v, func() bool {
		for i, w := range words {
			if (i < margin || i >= margin+n) && w != old[i] {
				return false
			}
		}
		return true
	}
}

// Non-temporal stores give the same result, and are never used for a vector that is also read.
func TestCombineOfLongVectors(t *testing.T) {
	defer func(old int) { nonTemporalFrom = old }(nonTemporalFrom)
	d, v := Ops{}, make([]*Vector, 9)
	for k := range v {
		v[k] = &Vector{kerneltest.Noise(fmt.Sprint(k), 5000)}
	}
	for count := 1; count <= 8; count++ {
		for into := range count + 1 {
			var results [2][]float32
			for i, from := range []int{1 << 40, 100} {
				nonTemporalFrom = from
				var terms []device.Term
				for k := range count {
					terms = append(terms, device.Term{A: 0.8 - 0.3*float64(k),
						V: &Vector{append([]float32{}, v[k+1].Data...)}})
				}
				dst := &Vector{make([]float32, 5000)}
				if into > 0 {
					dst = terms[into-1].V.(*Vector)
				}
				if past := termsNonTemporal(dst.Data, terms); past != (i == 1 && into == 0) {
					t.Fatalf("%d terms into %d, long from %d: non-temporal: %t", count, into, from, past)
				}
				d.Do(device.Combine(dst, terms...))
				results[i] = dst.Data
			}
			for i, w := range results[0] {
				if !kerneltest.Same(results[1][i], w) {
					t.Fatalf("%d terms into %d: element %d is %v, want %v", count, into, i, results[1][i], w)
				}
			}
		}
	}
}

// Every unrolled loop agrees with the simple one, to the last bit, around the block of combineMany.
func TestCombineTwin(t *testing.T) {
	d := Ops{}
	for _, n := range []int{0, 1, 3, 4, 5, 8, 31, combineBlock - 1, combineBlock, combineBlock + 1,
		3*combineBlock + 7} {
		for count := range 11 {
			for _, first := range []float64{1, 0.7} {
				dst, whole := framed("dst", n)
				var terms []device.Term
				want := make([]float32, n)
				for k := range count {
					v, _ := framed(fmt.Sprint(k), n)
					a := 0.3 - 0.17*float64(k)
					if k == 0 {
						a = first
					}
					terms = append(terms, device.Term{A: a, V: v})
					for i, x := range v.Data {
						if p := float32(float32(a) * x); k == 0 {
							want[i] = p
						} else {
							want[i] += p
						}
					}
				}
				d.Do(device.Combine(dst, terms...))
				for i, w := range want {
					if math.Float32bits(dst.Data[i]) != math.Float32bits(w) {
						t.Fatalf("%d terms of %d: element %d is %v, want %v", count, n, i, dst.Data[i], w)
					}
				}
				if !whole() {
					t.Fatalf("%d terms of %d: words around dst were overwritten", count, n)
				}
			}
		}
	}
}

func TestVectorOperationsAllocateNothing(t *testing.T) {
	d := Ops{}
	x, _ := framed("x", 1000)
	y, _ := framed("y", 1000)
	own, _ := framed("own", 3)
	other, _ := framed("other", 3)
	idx := d.NewIndex([]uint32{1, 50, 999}, nil)
	far := []device.Term{{A: 1, V: &Vector{kerneltest.Noise("far", 1<<18)}},
		{A: 2, V: &Vector{kerneltest.Noise("away", 1<<18)}}}
	terms := make([]device.Term, 9)
	for i := range terms {
		terms[i] = device.Term{A: 0.1, V: y}
	}
	sum := 0.0
	parts := []device.SparseTerm{{A: 1, V: own, Idx: idx}, {A: 2, V: other, Idx: idx}, {A: 3, V: y}}
	for name, f := range map[string]func(){
		"Combine of 3": func() { d.Do(device.Combine(x, terms[:3]...)) },
		"Combine of 9": func() { d.Do(device.Combine(x, terms...)) },
		"Gather":       func() { d.Do(device.Gather(own, x, idx)) },
		"AddDiff of 2": func() { d.Do(device.AddDiff(own, other, idx, terms[:2]...)) },
		"AddDiff of 9": func() { d.Do(device.AddDiff(own, other, idx, terms...)) },
		"Gather far":   func() { d.Do(device.Gather(own, far[0].V, idx)) },
		"AddDiff far":  func() { d.Do(device.AddDiff(own, other, idx, far...)) },
		"AddDiff of 1": func() { d.Do(device.AddDiff(own, other, idx, far[:1]...)) },
		"AddDiffs":     func() { d.Do(device.AddDiffs(terms[0], x, terms, terms[:2]...)) },
		"ScatterAdd":   func() { d.Do(device.ScatterAdd(x, parts...)) },
		"AddDiff all":  func() { d.Do(device.AddDiff(x, y, nil, terms[:2]...)) },
		"Dot":          func() { d.Do(device.Dot(&sum, x, y)) },
		"Multiply": func() {
			a, b := device.Rows(y, 0, 20, 9), device.Rows(y, 300, 30, 9).T()
			d.Do(device.Multiply(device.Rows(x, 0, 20, 30), 0.3, a, b, 1))
		},
		"neighbours": func() { d.Do(device.Combine(x, terms[:3]...), device.Gather(y, x, nil)) },
		"NewIndex":   func() { idx = d.NewIndex([]uint32{2, 3}, idx); idx = d.NewIndex([]uint32{1, 50, 999}, idx) },
	} {
		if n := testing.AllocsPerRun(5, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// paperDim and resnetDim are the numbers of parameters of the network of the paper's first figure
// and of ResNet-50: one fits into the second-level cache, the other is larger than all caches.
const (
	paperDim  = 79510
	resnetDim = 25557032
)

// longVector returns a vector of n random numbers that repeat after a while. Different names give
// different numbers.
func longVector(name string, n int) *Vector {
	v, some := kernel.Aligned(n), kerneltest.Noise(name, min(n, 99991))
	for i := 0; i < n; i += len(some) {
		copy(v[i:], some)
	}
	return &Vector{v}
}

// BenchmarkCombine counts the bytes read and written. It times copy, counted alike, for comparison.
func BenchmarkCombine(b *testing.B) {
	d := Ops{}
	for _, n := range []int{paperDim, resnetDim} {
		var v [9]*Vector
		for k := range v {
			v[k] = longVector(fmt.Sprint(k), n)
		}
		run := func(name string, streams int, f func()) {
			b.Run(fmt.Sprintf("n=%d/%s", n, name), func(b *testing.B) {
				b.SetBytes(int64(4 * n * streams))
				for b.Loop() {
					f()
				}
			})
		}
		run("copy", 2, func() { copy(v[0].Data, v[1].Data) })
		for _, count := range []int{1, 2, 3, 4, 5, 6, 8} {
			var terms []device.Term
			for k := range count {
				terms = append(terms, device.Term{A: 0.9 - 0.3*float64(k), V: v[k+1]})
			}
			run(fmt.Sprintf("terms=%d", count), count+1, func() { d.Do(device.Combine(v[0], terms...)) })
			if count == 3 {
				terms = append([]device.Term{{A: 1, V: v[0]}}, terms[:2]...)
				run("into=first/terms=3", count+1, func() { d.Do(device.Combine(v[0], terms...)) })
			}
		}
	}
}
