package cpu

import (
	"fmt"
	"math"
	"testing"

	"fspda/device"
)

// every returns the coordinates 1, 1+step, ... below n.
func every(n, step int) []uint32 {
	var at []uint32
	for i := 1; i < n; i += step {
		at = append(at, uint32(i))
	}
	return at
}

// Each of the loops of addDiff against the obvious one, to the last bit, around the block of the general one.
func TestAddDiffTwin(t *testing.T) {
	d := New()
	for _, k := range []int{0, 1, 5, diffBlock - 1, diffBlock, 2*diffBlock + 3} {
		for count := range 5 {
			for _, dense := range []bool{false, true} {
				n, at := 3*k+2, every(3*k, 3)
				idx := d.NewIndex(at, nil)
				if dense {
					n, at, idx = k, every(k, 1), nil
					at = append([]uint32{}, at...)
					for j := range at {
						at[j]--
					}
					if k > 0 {
						at = append(at, uint32(k-1))
					}
				}
				own, other := noise("own", k), noise("other", k)
				var terms []device.Term
				var want [][]float32
				var whole []func() bool
				for l := range count {
					v, ok := framed(fmt.Sprint(l), n)
					a := float32(0.4) - float32(l)
					terms, whole = append(terms, device.Term{A: float64(a), V: v}), append(whole, ok)
					w := append([]float32{}, v.Data...)
					for j, i := range at {
						w[i] += float32(a * (own[j] - other[j]))
					}
					want = append(want, w)
				}
				d.AddDiff(&Vector{own}, &Vector{other}, idx, terms...)
				for l := range terms {
					for i, w := range want[l] {
						if got := terms[l].V.(*Vector).Data[i]; math.Float32bits(got) != math.Float32bits(w) {
							t.Fatalf("%d coordinates, term %d of %d, dense %t: element %d is %v, want %v", k, l, count, dense, i, got, w)
						}
					}
					if !whole[l]() {
						t.Fatalf("%d coordinates, term %d: words around the vector were overwritten", k, l)
					}
				}
			}
		}
	}
}

// Without an index, own may be the vector that moves: each difference is taken before its element is written.
func TestAddDiffMovesOwn(t *testing.T) {
	d := New()
	for _, count := range []int{1, 2, 3} {
		x, y := &Vector{noise("x", 600)}, &Vector{noise("y", 600)}
		want := make([]float32, 600)
		for i := range want {
			want[i] = x.Data[i] + float32(-0.5*(x.Data[i]-y.Data[i]))
		}
		terms := []device.Term{{A: -0.5, V: x}, {A: 1, V: d.NewVector(600)}, {A: 2, V: d.NewVector(600)}}[:count]
		d.AddDiff(x, y, nil, terms...)
		for i := range want {
			if x.Data[i] != want[i] {
				t.Fatalf("%d terms: element %d is %v, want %v", count, i, x.Data[i], want[i])
			}
		}
	}
}

// A nil *Index stands for all coordinates like a nil Index.
func TestGatherThroughNilIndex(t *testing.T) {
	d := New()
	src, dst := &Vector{noise("src", 10)}, &Vector{make([]float32, 10)}
	var none *Index
	d.Gather(dst, src, none)
	for i, v := range src.Data {
		if dst.Data[i] != v {
			t.Fatalf("element %d is %v, want %v", i, dst.Data[i], v)
		}
	}
}

// BenchmarkSparse reports the time per selected coordinate, at one in ten.
func BenchmarkSparse(b *testing.B) {
	d := New()
	for _, n := range []int{79510, 1 << 23} {
		at := every(n, 10)
		idx := d.NewIndex(at, nil)
		x, y := &Vector{noise("x", n)}, &Vector{noise("y", n)}
		own, other := &Vector{noise("own", len(at))}, &Vector{noise("other", len(at))}
		for name, f := range map[string]func(){
			"gather":  func() { d.Gather(own, x, idx) },
			"addDiff": func() { d.AddDiff(own, other, idx, device.Term{A: -0.1, V: x}, device.Term{A: 0.1, V: y}) },
		} {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				b.SetBytes(int64(4 * len(at)))
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(at)), "ns/coordinate")
			})
		}
	}
}
