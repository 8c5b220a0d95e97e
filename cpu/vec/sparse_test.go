package vec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/internal/testing/kerneltest"
)

// everyNth returns the coordinates 1, 1+step, ... below n.
func everyNth(n, step int) []uint32 {
	var at []uint32
	for i := 1; i < n; i += step {
		at = append(at, uint32(i))
	}
	return at
}

// Each loop of addDiff agrees with the simple one, to the last bit, around the block of
// addDiffMany.
func TestAddDiffTwin(t *testing.T) {
	d := Ops{}
	for _, k := range []int{0, 1, 5, diffBlock - 1, diffBlock, 2*diffBlock + 3} {
		for count := range 5 {
			for _, dense := range []bool{false, true} {
				n, at := 3*k+2, everyNth(3*k, 3)
				idx := d.NewIndex(at, nil)
				if dense {
					n, at, idx = k, everyNth(k, 1), nil
					at = append([]uint32{}, at...)
					for j := range at {
						at[j]--
					}
					if k > 0 {
						at = append(at, uint32(k-1))
					}
				}
				own, other := kerneltest.Noise("own", k), kerneltest.Noise("other", k)
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
				d.Do(device.AddDiff(&Vector{own}, &Vector{other}, idx, terms...))
				for l := range terms {
					for i, w := range want[l] {
						if got := terms[l].V.(*Vector).Data[i]; math.Float32bits(got) != math.Float32bits(w) {
							t.Fatalf("%d coordinates, term %d of %d, dense %t: element %d is %v, want %v", k, l, count,
								dense, i, got, w)
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

// Coordinates without gaps are moved as ranges, and have the bits of the simple loops, also where a
// range begins in one block of a vector and ends in the next.
func TestAdjacentTwin(t *testing.T) {
	d := Ops{}
	for _, n := range []int{63, 64, 65, 1000, scatterBlock + 77} {
		for _, from := range []int{0, 3, scatterBlock - 70} {
			for gap := range 2 {
				at := everyNth(n+1, 1)
				for j := range at {
					at[j] += uint32(from)
				}
				at[n-1] += uint32(gap)
				idx, v, p := d.NewIndex(at, nil), kerneltest.Noise("v", from+n+9), kerneltest.Noise("p", n)
				want, got := slices.Clone(v), make([]float32, n)
				d.Do(device.Gather(&Vector{got}, &Vector{v}, idx))
				for j, i := range at {
					if got[j] != v[i] {
						t.Fatalf("%d coordinates from %d: number %d is %v, want %v", n, from, j, got[j], v[i])
					}
					want[i] += float32(0.7 * p[j])
					want[i] += float32(-1.3 * got[j])
				}
				d.Do(device.ScatterAdd(&Vector{v}, device.SparseTerm{A: 0.7, V: &Vector{p}, Idx: idx},
					device.SparseTerm{A: -1.3, V: &Vector{got}, Idx: idx}))
				for i, w := range want {
					if math.Float32bits(v[i]) != math.Float32bits(w) {
						t.Fatalf("%d coordinates from %d: number %d is %v, want %v", n, from, i, v[i], w)
					}
				}
			}
		}
	}
}

// Without an index, own may be a vector that changes: each difference is computed before its
// element is written.
func TestAddDiffMovesOwn(t *testing.T) {
	d := Ops{}
	for _, count := range []int{1, 2, 3} {
		x, y := &Vector{kerneltest.Noise("x", 600)}, &Vector{kerneltest.Noise("y", 600)}
		want := make([]float32, 600)
		for i := range want {
			want[i] = x.Data[i] + float32(-0.5*(x.Data[i]-y.Data[i]))
		}
		terms := []device.Term{{A: -0.5, V: x}, {A: 1, V: &Vector{make([]float32, 600)}},
			{A: 2, V: &Vector{make([]float32, 600)}}}[:count]
		d.Do(device.AddDiff(x, y, nil, terms...))
		for i := range want {
			if x.Data[i] != want[i] {
				t.Fatalf("%d terms: element %d is %v, want %v", count, i, x.Data[i], want[i])
			}
		}
	}
}

// BenchmarkSparse reports the time per selected coordinate, and the bytes of the cache lines that
// are touched. One coordinate is chosen in each stretch of 10, 100 and 1000. exchange is gather and
// addDiff together. Copying the vector is timed for comparison.
func BenchmarkSparse(b *testing.B) {
	d := Ops{}
	for _, n := range []int{paperDim, resnetDim} {
		x, y := longVector("x", n), longVector("y", n)
		b.Run(fmt.Sprintf("n=%d/copy", n), func(b *testing.B) {
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				copy(x.Data, y.Data)
			}
		})
		for _, step := range []int{10, 100, 1000} {
			at, lines := oneInEach(n, step)
			idx, k := d.NewIndex(at, nil), len(at)
			own, other := longVector("own", k), longVector("other", k)
			gather := func() { d.Do(device.Gather(own, x, idx)) }
			add := func() {
				d.Do(device.AddDiff(own, other, idx, device.Term{A: -0.1, V: x}, device.Term{A: 0.1, V: y}))
			}
			for _, c := range []struct {
				name  string
				bytes int
				f     func()
			}{
				{"gather", 64*lines + 8*k, gather},
				{"addDiff", 4*64*lines + 12*k, add},
				{"exchange", 5*64*lines + 20*k, func() { gather(); add() }},
			} {
				b.Run(fmt.Sprintf("n=%d/one in %d/%s", n, step, c.name), func(b *testing.B) {
					b.SetBytes(int64(c.bytes))
					for b.Loop() {
						c.f()
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(k), "ns/coordinate")
				})
			}
		}
	}
}

// oneInEach chooses a coordinate in each stretch of step numbers, and counts their cache lines.
func oneInEach(n, step int) (at []uint32, lines int) {
	r := rng.New(1, "one in each", uint64(step))
	for i := 0; i+step <= n; i += step {
		at = append(at, uint32(i+r.IntN(step)))
		if j := len(at) - 1; j == 0 || at[j]/(kernel.CacheLine/4) != at[j-1]/(kernel.CacheLine/4) {
			lines++
		}
	}
	return at, lines
}
