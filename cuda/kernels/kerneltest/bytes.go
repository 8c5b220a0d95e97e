package kerneltest

import (
	"fmt"
	"math"

	"fspda/cuda/kernels"
	"fspda/internal/rng"
)

// byteProducts is the operands of products of byte inputs: m examples of k bytes for each of two
// agents, weights n×k, and gradients m×n.
type byteProducts struct {
	m, n, k      int
	bytes        []uint8
	rows         []int32
	scale, shift float32
	w, dy        [byteAgents][]float32
	decay        float64 // The factor of the weights in their gradient.

	y  [byteAgents][]float32 // the product of the examples and the weights
	dw [byteAgents][]float32 // the gradient of the weights
}

const (
	byteAgents = 2
	byteRows   = 70 // examples of both agents
)

// byteShapes cover rows and columns of one block and of several, parts of k, and batches that are not
// whole steps of a product.
var byteShapes = []struct{ m, n, k int }{{1, 2, 16}, {64, 104, 48}, {45, 100, 784}, {70, 10, 400}, {33, 300, 32},
	{130, 6, 80}, {256, 100, 64}, {300, 8, 144}, {384, 14, 16}}

func newByteProducts(m, n, k int, scale, shift float32, byteOf func(s *rng.Stream, row, column int) uint8,
	number func(s *rng.Stream) float32) *byteProducts {
	p := &byteProducts{m: m, n: n, k: k, scale: scale, shift: shift, bytes: make([]uint8, byteRows*k),
		rows: make([]int32, byteAgents*m)}
	s := rng.New(uint64(m*n+k), "byte products")
	for i := range p.bytes {
		p.bytes[i] = byteOf(&s, i/k, i%k)
	}
	for i := range p.rows {
		p.rows[i] = int32(s.IntN(byteRows))
	}
	for z := range byteAgents {
		p.w[z], p.dy[z] = make([]float32, n*k), make([]float32, m*n)
		for _, v := range [][]float32{p.w[z], p.dy[z]} {
			for i := range v {
				v[i] = number(&s)
			}
		}
	}
	return p
}

func randomByte(s *rng.Stream, _, _ int) uint8 { return uint8(s.Uint64()) }

// operand is a matrix of each agent.
func operand(b *fixture, v *[byteAgents][]float32) kernels.Operand {
	list := make([]kernels.Address, byteAgents)
	for z := range v {
		list[z] = at(b, v[z])
	}
	return kernels.Operand{List: at(b, list)}
}

// run computes both products. It is false where the GPU has no
// tensor cores and leaves the results as they are.
func (p *byteProducts) run(b *fixture) bool {
	const untouched = -12345
	for z := range byteAgents {
		p.y[z], p.dw[z] = make([]float32, p.m*p.n), make([]float32, p.n*p.k)
		p.dw[z][0] = untouched
	}
	inputs := &kernels.ByteInputs{Bytes: at(b, p.bytes), Rows: at(b, p.rows), Scale: p.scale, Shift: p.shift}
	forward := kernels.Gemm{Agents: byteAgents, M: p.m, N: p.n, K: p.k, Form: "nt", Bytes: inputs,
		B: operand(b, &p.w), TensorCores: true}
	parts := forward.Parts()
	part := make([]float32, byteAgents*parts*p.m*p.n)
	back := kernels.Gemm{Agents: byteAgents, M: p.n, N: p.k, K: p.m, Form: "tn", A: operand(b, &p.dy), Bytes: inputs,
		C: operand(b, &p.dw), TensorCores: true}
	if p.decay != 0 {
		back.Epilogue, back.Aux, back.Factor = kernels.AddScaled, forward.B, float32(p.decay)
	}
	calls := []kernels.Call{forward.PartsCall(at(b, part)), back.Call()}
	for i, want := range []string{"gemm_nt_bytes_mma", "gemm_tn_bytes_mma"} {
		if got := calls[i].Kernel.Name; got != want {
			b.Fatalf("a product of bytes is computed by %s, want %s", got, want)
		}
	}
	b.run(calls...)
	for z := range byteAgents {
		for i := range p.y[z] {
			for q := range parts {
				p.y[z][i] += part[(z*parts+q)*p.m*p.n+i]
			}
		}
	}
	return p.dw[0][0] != untouched
}

// number is the number of byte q of example i of an agent, as two summands.
func (p *byteProducts) number(agent, i, q int) (scaled, shift float64) {
	b := p.bytes[int(p.rows[agent*p.m+i])*p.k+q]
	return float64(b) * float64(p.scale), float64(p.shift)
}

// each calls f for all elements of both products, with their terms.
func (p *byteProducts) each(f func(what string, got float32, terms []float64)) {
	var terms []float64
	for z := range byteAgents {
		for i := range p.m {
			for j := range p.n {
				terms = terms[:0]
				for q := range p.k {
					scaled, shift := p.number(z, i, q)
					w := float64(p.w[z][j*p.k+q])
					terms = append(terms, scaled*w, shift*w)
				}
				f(fmt.Sprintf("agent %d: element %d, %d", z, i, j), p.y[z][i*p.n+j], terms)
			}
		}
		for j := range p.n {
			for q := range p.k {
				terms = terms[:0]
				for i := range p.m {
					scaled, shift := p.number(z, i, q)
					dy := float64(p.dy[z][i*p.n+j])
					terms = append(terms, scaled*dy, shift*dy)
				}
				terms = append(terms, p.decay*float64(p.w[z][j*p.k+q]))
				f(fmt.Sprintf("agent %d: gradient %d, %d", z, j, q), p.dw[z][j*p.k+q], terms)
			}
		}
	}
}

// byteSums checks that products of bytes on tensor cores are sums of exact products.
func byteSums(b *fixture) {
	for _, s := range byteShapes {
		p := newByteProducts(s.m, s.n, s.k, 0.0127, -0.42, randomByte,
			func(s *rng.Stream) float32 { return float32(s.Norm()) })
		p.decay = 0.25
		if !p.run(b) {
			return
		}
		wrong := 0
		p.each(func(what string, got float32, terms []float64) {
			want, size := 0.0, 0.0
			for _, v := range terms {
				want, size = want+v, size+math.Abs(v)
			}
			// tensor cores may truncate where others round, three times for 16 products
			if bound := 0x1p-16 * size; !(math.Abs(float64(got)-want) <= bound) {
				if wrong++; wrong == 1 {
					b.Errorf("%v: %s is %v, want %v within %.2g", s, what, got, want, bound)
				}
			}
		})
		if wrong > 1 {
			b.Errorf("%v: as many as %d elements are wrong", s, wrong)
		}
		b.release()
	}
}

// byteFactors checks that the factors on tensor cores have all 24 bits: of each example one byte is not
// 0, so that an element is one product. The numbers have float32 exponents from 2^-100 on.
func byteFactors(b *fixture) {
	const m, n, k = 48, 104, 64
	p := newByteProducts(m, n, k, 1, 0, func(s *rng.Stream, row, column int) uint8 {
		if row%k != column {
			return 0
		}
		return uint8(1 + s.IntN(255))
	}, func(s *rng.Stream) float32 {
		return math.Float32frombits(uint32(s.Uint64())&0x807fffff | uint32(27+s.IntN(215))<<23)
	})
	for z := range byteAgents { // of each column of the bytes one row at most
		for i := range m {
			p.rows[z*m+i] = int32((7*i + z) % k)
		}
	}
	if !p.run(b) {
		return
	}
	wrong := 0
	p.each(func(what string, got float32, terms []float64) {
		want := 0.0
		for _, v := range terms {
			want += v
		}
		if !(math.Abs(float64(got)-want) <= 0x1p-22*math.Abs(want)) {
			if wrong++; wrong == 1 {
				b.Errorf("%s is %v, want %v", what, got, want)
			}
		}
	})
	if wrong > 1 {
		b.Errorf("%d elements are wrong", wrong)
	}
}

// byteDivergence checks that a factor that is not finite makes the elements that it is part of not
// finite, and no others.
func byteDivergence(b *fixture) {
	const m, n, k = 40, 20, 48
	for _, bits := range []uint32{0x7fffffff, 0xffffffff, 0x7f800001, 0x7fc00000, 0x7f800000, 0xff800000} {
		p := newByteProducts(m, n, k, 0.0127, -0.42, randomByte,
			func(s *rng.Stream) float32 { return float32(s.Norm()) })
		p.w[0][3*k+5], p.dy[0][7*n+3] = math.Float32frombits(bits), math.Float32frombits(bits)
		if !p.run(b) {
			return
		}
		for z := range byteAgents {
			for what, v := range map[string][]float32{"product": p.y[z], "gradient": p.dw[z]} {
				for i, got := range v {
					column := map[string]int{"product": i % n, "gradient": i / k}[what]
					finite := !math.IsNaN(float64(got)) && !math.IsInf(float64(got), 0)
					if hit := z == 0 && column == 3; hit == finite {
						b.Errorf("agent %d: element %d of the %s with a factor of bits %#x is %v", z, i, what, bits,
							got)
						return
					}
				}
			}
		}
		b.release()
	}
}
