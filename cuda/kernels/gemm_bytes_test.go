package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/internal/rng"
)

// byteProducts is the factors of products of byte inputs: examples of k bytes, of which each agent
// has m, weights n×k, and gradients m×n.
type byteProducts struct {
	agents, m, n, k int
	batch           device.Batch
	bytes           *kernels.ByteInputs
	w, dy           [][]float32
	pw, pdy         kernels.Operand
}

func newByteProducts(h *host, agents, m, n, k int) *byteProducts {
	const stored = 70
	s := rng.New(uint64(m*n+k), "byte products")
	batch := device.Batch{Bytes: randomBytes(stored * k), Rows: make([]int32, agents*m), Scale: []float32{0.0127},
		Shift: []float32{-0.42}, Y: make([]int32, agents*m)}
	for i := range batch.Rows {
		batch.Rows[i] = int32(s.IntN(stored))
	}
	p := &byteProducts{agents: agents, m: m, n: n, k: k, batch: batch,
		bytes: &kernels.ByteInputs{Bytes: at(h, batch.Bytes), Rows: at(h, batch.Rows), Scale: batch.Scale[0],
			Shift: batch.Shift[0]}}
	p.w, p.pw = each(h, agents, n*k, 4, 20)
	p.dy, p.pdy = each(h, agents, m*n, 1, 30)
	return p
}

// forward returns the product of the examples and the weights, from its summands, and backward the
// gradient of the weights, plus factor times these.
func (p *byteProducts) forward(h *host, tensorCores bool) []float32 {
	parts := (p.k + 383) / 384
	part := make([]float32, p.agents*parts*p.m*p.n)
	h.run(kernels.Gemm{Agents: p.agents, M: p.m, N: p.n, K: p.k, Form: "nt", Bytes: p.bytes, B: p.pw,
		TensorCores: tensorCores}.PartsCall(at(h, part)))
	sum := make([]float32, p.agents*p.m*p.n)
	for i := range sum {
		z, e := i/(p.m*p.n), i%(p.m*p.n)
		for q := range parts {
			sum[i] += part[(z*parts+q)*p.m*p.n+e]
		}
	}
	return sum
}

func (p *byteProducts) backward(h *host, factor float32, tensorCores bool) (dw [][]float32) {
	g := kernels.Gemm{Agents: p.agents, M: p.n, N: p.k, K: p.m, Form: "tn", A: p.pdy, Bytes: p.bytes,
		TensorCores: tensorCores}
	dw, g.C = each(h, p.agents, p.n*p.k, 0, 40)
	if factor != 0 {
		g.Epilogue, g.Aux, g.Factor = kernels.AddScaled, p.pw, factor
	}
	h.run(g.Call())
	return dw
}

// Products of bytes on tensor cores equal products of exact numbers, but for the rounding of sums.
func TestGemmBytesOnTensorCores(t *testing.T) {
	h := onHost(t)
	for _, s := range []struct{ agents, m, n, k int }{{1, 1, 1, 16}, {2, 64, 104, 48}, {1, 45, 100, 784},
		{2, 70, 10, 400}, {1, 33, 300, 32}, {1, 130, 7, 80}, {1, 300, 9, 144}, {1, 384, 13, 16}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			p := newByteProducts(h, s.agents, s.m, s.n, s.k)
			if _, name := p.names(); name != "gemm_nt_bytes_mma gemm_tn_bytes_mma" {
				t.Fatalf("the kernels are %s", name)
			}
			y := p.forward(h, true)
			const factor = 0.25
			dw, plain := p.backward(h, factor, true), p.backward(h, 0, true)
			for z := range s.agents {
				near := func(what string, row, column int, got float32, sum *boundedSum) {
					t.Helper()
					if math.Abs(float64(got)-sum.value) > 0x1p-21*sum.size {
						t.Fatalf("agent %d: %s %d, %d is %v, want %v within %v", z, what, row, column, got, sum.value,
							0x1p-21*sum.size)
					}
				}
				for i := range s.m {
					for j := range s.n {
						var sum boundedSum
						for q := range s.k {
							scaled, shift := p.number(z, i, q)
							sum.add(scaled*float64(p.w[z][j*s.k+q]), shift*float64(p.w[z][j*s.k+q]))
						}
						near("element", i, j, y[z*s.m*s.n+i*s.n+j], &sum)
					}
				}
				for j := range s.n {
					for q := range s.k {
						var sum boundedSum
						for i := range s.m {
							scaled, shift := p.number(z, i, q)
							sum.add(scaled*float64(p.dy[z][i*s.n+j]), shift*float64(p.dy[z][i*s.n+j]))
						}
						near("gradient without decay", j, q, plain[z][j*s.k+q], &sum)
						sum.add(factor * float64(p.w[z][j*s.k+q]))
						near("gradient", j, q, dw[z][j*s.k+q], &sum)
					}
				}
			}
		})
	}
}

// boundedSum is a sum and the sum of the terms' absolute values.
type boundedSum struct{ value, size float64 }

func (s *boundedSum) add(terms ...float64) {
	for _, v := range terms {
		s.value, s.size = s.value+v, s.size+math.Abs(v)
	}
}

// number returns the number of byte q of example i of an agent as two summands.
func (p *byteProducts) number(agent, i, q int) (scaled, shift float64) {
	b := p.batch.Bytes[int(p.batch.Rows[agent*p.m+i])*p.k+q]
	return float64(b) * float64(p.batch.Scale[0]), float64(p.batch.Shift[0])
}

// names returns the kernels of both products, without and with tensor cores.
func (p *byteProducts) names() (without, with string) {
	var all [2]string
	for i := range all {
		g := kernels.Gemm{Agents: 1, M: p.m, N: p.n, K: p.k, Form: "nt", Bytes: p.bytes, B: p.pw, TensorCores: i == 1}
		back := kernels.Gemm{Agents: 1, M: p.n, N: p.k, K: p.m, Form: "tn", Bytes: p.bytes, TensorCores: i == 1}
		all[i] = g.PartsCall(0).Kernel.Name + " " + back.Call().Kernel.Name
	}
	return all[0], all[1]
}
