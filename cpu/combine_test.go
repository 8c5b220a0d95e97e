package cpu

import (
	"fmt"
	"math"
	"testing"

	"fspda/device"
)

// framed returns a vector of n random numbers in the middle of a slice of its own, and a function that says whether a word
// around it changed.
func framed(name string, n int) (v *Vector, whole func() bool) {
	const margin = 16
	words := noise(name, n+2*margin)
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

// Every unrolled loop is held to the obvious one, to the last bit, around the unrolling and the block of the general one.
func TestCombineTwin(t *testing.T) {
	d := New()
	for _, n := range []int{0, 1, 3, 4, 5, 8, 31, combineBlock - 1, combineBlock, combineBlock + 1, 3*combineBlock + 7} {
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
				d.Combine(dst, terms...)
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
	d := New()
	x, _ := framed("x", 1000)
	y, _ := framed("y", 1000)
	own, _ := framed("own", 3)
	other, _ := framed("other", 3)
	idx := d.NewIndex([]uint32{1, 50, 999}, nil)
	terms := make([]device.Term, 9)
	for i := range terms {
		terms[i] = device.Term{A: 0.1, V: y}
	}
	for name, f := range map[string]func(){
		"Combine of 3": func() { d.Combine(x, terms[:3]...) },
		"Combine of 9": func() { d.Combine(x, terms...) },
		"Gather":       func() { d.Gather(own, x, idx) },
		"AddDiff of 2": func() { d.AddDiff(own, other, idx, terms[:2]...) },
		"AddDiff of 9": func() { d.AddDiff(own, other, idx, terms...) },
		"Dot":          func() { d.Dot(x, y) },
		"NewIndex":     func() { idx = d.NewIndex([]uint32{2, 3}, idx); idx = d.NewIndex([]uint32{1, 50, 999}, idx) },
	} {
		if n := testing.AllocsPerRun(5, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

// BenchmarkCombine counts the bytes read and written, for the network of the paper's first figure and beyond the cache.
func BenchmarkCombine(b *testing.B) {
	d := New()
	for _, n := range []int{79510, 1 << 23} {
		for _, count := range []int{1, 2, 3, 4, 6, 8} {
			b.Run(fmt.Sprintf("n=%d/terms=%d", n, count), func(b *testing.B) {
				dst := d.NewVector(n)
				terms := make([]device.Term, count)
				for k := range terms {
					terms[k] = device.Term{A: 1 - 0.3*float64(k), V: &Vector{Data: noise(fmt.Sprint(k), n)}}
				}
				b.SetBytes(int64(4 * n * (count + 1)))
				for b.Loop() {
					d.Combine(dst, terms...)
				}
			})
		}
	}
}
