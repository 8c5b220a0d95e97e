package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/internal/rng"
)

// lengths are near the lengths that a thread and a block work on.
var lengths = []int{1, 3, 4, 5, 1024, 1027, 4097}

// onCPU is a vector of the CPU engine with the given numbers.
func onCPU(d *cpu.Device, v []float32) device.Vector {
	x := d.NewVector(len(v))
	d.Write(x, v)
	return x
}

func fromCPU(d *cpu.Device, v device.Vector) []float32 {
	out := make([]float32, v.Len())
	d.Read(out, v)
	return out
}

func TestCombine(t *testing.T) {
	h, d := onHost(t), cpu.New()
	for _, n := range lengths {
		for k := 1; k <= 9; k++ {
			// with offset 1, vectors are not aligned to 16 bytes
			for _, offset := range []int{0, 1} {
				var terms []kernels.Term
				var want []device.Term
				var all []kernels.Address
				var factors []float32
				for i := range k {
					v := numbers(uint64(i), n+offset)
					a := float32(i)*0.3 - 1
					terms = append(terms, kernels.Term{A: a, V: at(h, v[offset:])})
					want = append(want, device.Term{A: float64(a), V: onCPU(d, v[offset:])})
					all, factors = append(all, terms[i].V), append(factors, a)
				}
				out := d.NewVector(n)
				d.Do(device.Combine(out, want...))
				got := make([]float32, n+1)
				got[n] = 7
				if k <= kernels.MaxTerms {
					h.run(kernels.Combine(at(h, got), n, terms...))
					sameBits(t, fmt.Sprintf("%d terms", k), got[:n], fromCPU(d, out))
				}
				h.run(kernels.CombineList(at(h, got), n, kernels.List{V: at(h, all), A: at(h, factors), Len: k}))
				sameBits(t, fmt.Sprintf("list of %d terms", k), got[:n], fromCPU(d, out))
				if got[n] != 7 {
					t.Fatalf("%d terms of %d numbers: wrote beyond the end", k, n)
				}
				if k >= 2 && k <= kernels.MaxTerms { // dst may be a term
					own, p := copied(h, numbers(0, n+offset)[offset:])
					terms[0].V = p
					h.run(kernels.Combine(p, n, terms...))
					sameBits(t, fmt.Sprintf("%d terms in place", k), own, fromCPU(d, out))
				}
			}
		}
	}
}

// everyThird returns every third coordinate below n.
func everyThird(n int) []uint32 {
	var idx []uint32
	for i := 0; i < n; i += 3 {
		idx = append(idx, uint32(i))
	}
	return idx
}

func TestSparse(t *testing.T) {
	h, d := onHost(t), cpu.New()
	for _, n := range lengths {
		idx := everyThird(n)
		k := len(idx)
		v, own, other := numbers(1, n), numbers(2, k), numbers(3, k)
		x, l := numbers(4, n), numbers(5, n)
		cv, cx, cl, on := onCPU(d, v), onCPU(d, x), onCPU(d, l), d.NewIndex(idx, nil)
		picked := d.NewVector(k)
		d.Do(device.Gather(picked, cv, on))
		got := make([]float32, k)
		h.run(kernels.Gather(at(h, got), at(h, v), at(h, idx), k))
		sameBits(t, "gather", got, fromCPU(d, picked))

		gx, px := copied(h, x)
		gl, pl := copied(h, l)
		d.Do(device.AddDiff(onCPU(d, own), onCPU(d, other), on, device.Term{A: -0.3, V: cx},
			device.Term{A: 0.7, V: cl}))
		h.run(kernels.AddDiff(at(h, own), at(h, other), at(h, idx), k, kernels.Term{A: -0.3, V: px},
			kernels.Term{A: 0.7, V: pl}))
		sameBits(t, "add-diff", gx, fromCPU(d, cx))
		sameBits(t, "add-diff", gl, fromCPU(d, cl))
		for _, to := range [][]device.Term{{{A: 0.2, V: cx}}, {{A: 0.2, V: cx}, {A: -0.1, V: cx}}} { // one vector
			d.Do(device.AddDiff(onCPU(d, own), onCPU(d, other), on, to...))
			terms := make([]kernels.Term, len(to))
			for i := range to {
				terms[i] = kernels.Term{A: float32(to[i].A), V: px}
			}
			h.run(kernels.AddDiff(at(h, own), at(h, other), at(h, idx), k, terms...))
			sameBits(t, "add-diff to one vector", gx, fromCPU(d, cx))
		}

		d.Do(device.AddDiff(onCPU(d, x), onCPU(d, l), nil, device.Term{A: 0.9, V: cv}))
		gv, pv := copied(h, v)
		h.run(kernels.AddDiffList(at(h, x), at(h, l), 0, n, kernels.List{V: at(h, []kernels.Address{pv}),
			A: at(h, []float32{0.9}), Len: 1}))
		sameBits(t, "add-diff of all", gv, fromCPU(d, cv))

		d.Do(device.ScatterAdd(cv, device.SparseTerm{A: 0.4, V: picked, Idx: on}, device.SparseTerm{A: -2, V: cx}))
		h.run(kernels.ScatterAdd(pv, kernels.Term{A: 0.4, V: at(h, got)}, at(h, idx), k),
			kernels.ScatterAdd(pv, kernels.Term{A: -2, V: px}, 0, n))
		sameBits(t, "scatter-add", gv, fromCPU(d, cv))
	}
}

func TestAddDiffs(t *testing.T) {
	h, d := onHost(t), cpu.New()
	for _, n := range []int{5, 1027} {
		for others := 0; others <= 8; others++ {
			for _, started := range []bool{false, true} {
				own, start, x, y := numbers(1, n), numbers(2, n), numbers(3, n), numbers(4, n)
				cx, cy := onCPU(d, x), onCPU(d, y)
				var on []kernels.Term
				var want []device.Term
				var addresses []kernels.Address
				var factors []float32
				for k := range others {
					v, a := numbers(uint64(10+k), n), 0.2*float32(k)-0.5
					on = append(on, kernels.Term{A: a, V: at(h, v)})
					want = append(want, device.Term{A: float64(a), V: onCPU(d, v)})
					addresses, factors = append(addresses, on[k].V), append(factors, a)
				}
				var first kernels.Term
				var cpuFirst device.Term
				if started {
					first, cpuFirst = kernels.Term{A: 0.6, V: at(h, start)}, device.Term{A: float64(float32(0.6)),
						V: onCPU(d, start)}
				}
				d.Do(device.AddDiffs(cpuFirst, onCPU(d, own), want, device.Term{A: -1.5, V: cx},
					device.Term{A: 0.25, V: cy}))
				gx, px := copied(h, x)
				gy, py := copied(h, y)
				if others <= kernels.MaxTerms {
					h.run(kernels.AddDiffs(n, first, at(h, own), on, kernels.Term{A: -1.5, V: px},
						kernels.Term{A: 0.25, V: py}))
				} else {
					to := kernels.List{V: at(h, []kernels.Address{px, py}), A: at(h, []float32{-1.5, 0.25}), Len: 2}
					h.run(kernels.AddDiffsList(n, first, at(h, own), kernels.List{V: at(h, addresses),
						A: at(h, factors), Len: others}, to))
				}
				sameBits(t, "x", gx, fromCPU(d, cx))
				sameBits(t, "y", gy, fromCPU(d, cy))
			}
		}
	}
}

// AdamW has the CPU's bits, starting from averages that are not zero.
func TestAdamW(t *testing.T) {
	h, d := onHost(t), cpu.New()
	a := device.Adam{Beta1: 0.9, Rest1: 0.1, Beta2: 0.999, Rest2: 0.001, Scale1: 1.2, Scale2: 3, Eps: 1e-8, Decay: 0.01,
		Limit: 0.5}
	for _, n := range lengths {
		g, m, v, x := numbers(1, n), numbers(2, n), numbers(3, n), numbers(4, n)
		for i := range v {
			v[i] *= v[i]
		}
		cg, cm, cv := onCPU(d, g), onCPU(d, m), onCPU(d, v)
		d.Do(device.AdamW(a, cg, cm, cv, onCPU(d, x)))
		gg, pg := copied(h, g)
		gm, pm := copied(h, m)
		gv, pv := copied(h, v)
		h.run(kernels.AdamW(a, kernels.AdamVectors{G: pg, M: pm, V: pv, X: at(h, x)}, n))
		sameBits(t, "direction", gg, fromCPU(d, cg))
		sameBits(t, "mean", gm, fromCPU(d, cm))
		sameBits(t, "mean square", gv, fromCPU(d, cv))
	}
}

// The scalar product has the CPU's bits for all magnitudes.
func TestDot(t *testing.T) {
	h, d := onHost(t), cpu.New()
	s := rng.New(1, "test")
	for _, n := range append(lengths, 1<<16+17) {
		x, y := numbers(1, n), numbers(2, n)
		for i := range x {
			x[i] = float32(math.Ldexp(float64(x[i]), s.IntN(60)-30))
		}
		part, out, rounded := make([]float64, kernels.DotParts(n)), make([]float64, 1), make([]float32, 1)
		calls := kernels.Dot(at(h, out), at(h, rounded), at(h, x), at(h, y), at(h, part), n, 1)
		h.run(calls[:]...)
		if want := device.InnerProduct(d, onCPU(d, x), onCPU(d, y)); out[0] != want || rounded[0] != float32(want) {
			t.Errorf("n=%d: %v and %v, want %v", n, out[0], rounded[0], want)
		}
	}
}

// Elementwise kernels of device.Kernel have the CPU's bits.
func TestElementwise(t *testing.T) {
	h := onHost(t)
	const n = 777
	x, y, one := numbers(1, n), numbers(2, n), []float32{0.1}
	out, want := make([]float32, n), make([]float32, n)
	for _, c := range []struct {
		call device.Call
		in   [][]float32
		ours kernels.Call
	}{
		{device.Call{Kernel: device.Add, Dims: []int{n}}, [][]float32{x, y}, kernels.Add(at(h, out), at(h, x), at(h, y),
			n)},
		{device.Call{Kernel: device.ScaleBy, Dims: []int{n}, Attr: 0.3}, [][]float32{x, one},
			kernels.ScaleBy(at(h, out), at(h, x), at(h, one), 0.3, n)},
		{device.Call{Kernel: device.Scale, Dims: []int{n}, Attr: 0.3}, [][]float32{x}, kernels.Combine(at(h, out), n,
			kernels.Term{A: 0.3, V: at(h, x)})},
		{device.Call{Kernel: device.MoveAverage, Dims: []int{n}, Attr: 1.01}, [][]float32{x, y, one},
			kernels.MoveAverage(at(h, out), at(h, x), at(h, y), at(h, one), 1.01, n)},
	} {
		if err := cpu.Call(&c.call, c.in, [][]float32{want}); err != nil {
			t.Fatal(err)
		}
		h.run(c.ours)
		sameBits(t, string(c.call.Kernel), out, want)
	}
	h.run(kernels.Fill(at(h, out), n, 2.5))
	if out[0] != 2.5 || out[n-1] != 2.5 {
		t.Errorf("filled with %v and %v, want 2.5", out[0], out[n-1])
	}
}

// CombineEach gives each vector the result of Combine; a vector may be one of its own terms.
func TestCombineEach(t *testing.T) {
	h := onHost(t)
	for _, n := range []int{1, 3, 1000, 1029} {
		for k := 1; k <= kernels.MaxTermsEach; k++ {
			for _, each := range []int{1, 2, kernels.MostEach} {
				var dst []kernels.Address
				var terms [][]kernels.Term
				var want, got [][]float32
				for i := range each {
					v, p := copied(h, numbers(uint64(i), n+1))
					w, q := copied(h, v)
					one, other := make([]kernels.Term, k), make([]kernels.Term, k)
					for j := range one {
						one[j] = kernels.Term{A: float32(j)*0.3 - 1 + 0.1*float32(i),
							V: at(h, numbers(uint64(100+7*i+j), n))}
						other[j] = one[j]
					}
					one[0].V, other[0].V = p, q
					dst, terms, got, want = append(dst, p), append(terms, one), append(got, v), append(want, w)
					h.run(kernels.Combine(q, n, other...))
				}
				h.run(kernels.CombineEach(dst, n, terms))
				for i := range want {
					sameBits(t, fmt.Sprintf("vector %d of %d, %d terms", i, each, k), got[i], want[i])
				}
			}
		}
	}
}

// A product has the CPU's bits, with more tiles than one in each direction.
func TestMultiply(t *testing.T) {
	h, d := onHost(t), cpu.New()
	for _, size := range [][3]int{{1, 1, 1}, {33, 70, 65}, {1, 200, 90}, {200, 1, 90}, {64, 31, 0}} {
		for layout := range 8 {
			m, n, k := size[0], size[1], size[2]
			matrix := func(seed uint64, rows, cols int, columns bool) ([]float32, device.View) {
				w := device.View{Offset: 3, Rows: rows, Cols: cols, Down: cols + 2, Right: 1}
				if columns {
					w = device.View{Offset: 3, Rows: cols, Cols: rows, Down: rows + 1, Right: 1}.T()
				}
				return numbers(seed, 3+(rows+2)*(cols+2)), w
			}
			a, va := matrix(1, m, k, layout&1 > 0)
			b, vb := matrix(2, k, n, layout&2 > 0)
			c, vc := matrix(3, m, n, layout&4 > 0)
			beta := []float64{0, 1, 0.6}[layout%3]
			cc := onCPU(d, c)
			op := device.Multiply(device.Matrix{V: cc, View: vc}, 0.3, device.Matrix{V: onCPU(d, a), View: va},
				device.Matrix{V: onCPU(d, b), View: vb}, beta)
			d.Do(op)
			got, at3 := copied(h, c)
			if call := kernels.Multiply(at3, at(h, a), at(h, b), op.Product); !call.Empty() {
				h.run(call)
			}
			sameBits(t, fmt.Sprint("product of ", size, " in layout ", layout), got, fromCPU(d, cc))
		}
	}
}
