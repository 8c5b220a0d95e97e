package kernels_test

import (
	"fmt"
	"math"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
)

// each creates a matrix for each agent, inside a vector of its own, and the operand for it.
func each(h *host, agents, n, offset int, seed uint64) ([][]float32, kernels.Operand) {
	var all [][]float32
	var list []kernels.Address
	for z := range agents {
		v := numbers(seed+uint64(z), offset+n)
		all, list = append(all, v[offset:]), append(list, at(h, v))
	}
	return all, kernels.Operand{List: at(h, list), Offset: offset}
}

// shapes cover one tile and several, one chunk of products and several, small and large blocks.
var shapes = []struct{ agents, m, n, k int }{{2, 1, 1, 1}, {3, 33, 10, 100}, {1, 9, 65, 385}, {1, 16, 9, 784}}

// nearSums fails unless numbers are near, as sums of the same numbers in another order are.
func nearSums(t testing.TB, what string, got, want []float32) {
	t.Helper()
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(float64(v)))
	}
	near(t, what, got, want, 1e-6, largest)
}

// Forward passes through a dense layer have the CPU's bits, and gradients are near.
func TestGemmLayers(t *testing.T) {
	h := onHost(t)
	for _, s := range shapes {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			x, px := each(h, s.agents, s.m*s.k, 0, 10)
			w, pw := each(h, s.agents, s.n*s.k, 3, 20)
			b, pb := each(h, s.agents, s.n, 1, 30)
			y, py := each(h, s.agents, s.m*s.n, 0, 40)
			dy, pdy := each(h, s.agents, s.m*s.n, 0, 50)
			below, pbelow := each(h, s.agents, s.m*s.k, 0, 60)
			dx, pdx := each(h, s.agents, s.m*s.k, 2, 70)
			dw, pdw := each(h, s.agents, s.n*s.k, 0, 80)
			db, pdb := each(h, s.agents, s.n, 5, 90)
			dims := []int{s.m, s.n, s.k}
			for epilogue, k := range map[kernels.GemmEpilogue]device.Kernel{kernels.AddBias: device.Linear,
				kernels.BiasSigmoid: device.LinearSigmoid, kernels.BiasReLU: device.LinearReLU} {
				h.run(kernels.Gemm{Agents: s.agents, M: s.m, N: s.n, K: s.k, Form: "nt", A: px, B: pw, C: py,
					Epilogue: epilogue, Aux: pb}.Call())
				for z := range s.agents {
					want := make([]float32, s.m*s.n)
					onCPUCall(t, k, dims, 0, [][]float32{x[z], w[z], b[z]}, [][]float32{want})
					sameBits(t, string(k), y[z], want)
				}
			}
			for epilogue, k := range map[kernels.GemmEpilogue]device.Kernel{kernels.NoEpilogue: device.LinearGradX,
				kernels.SigmoidGrad: device.LinearGradXSigmoid, kernels.ReLUGrad: device.LinearGradXReLU} {
				h.run(kernels.Gemm{Agents: s.agents, M: s.m, N: s.k, K: s.n, Form: "nn", A: pdy, B: pw, C: pdx,
					Epilogue: epilogue, Aux: pbelow}.Call())
				for z := range s.agents {
					want, in := make([]float32, s.m*s.k), [][]float32{dy[z], w[z], below[z]}
					if epilogue == kernels.NoEpilogue {
						in = in[:2]
					}
					onCPUCall(t, k, dims, 0, in, [][]float32{want})
					sameBits(t, string(k), dx[z], want)
				}
			}
			for epilogue, k := range map[kernels.GemmEpilogue]device.Kernel{kernels.NoEpilogue: device.LinearGradW,
				kernels.AddScaled: device.LinearGradWDecay} {
				h.run(kernels.Gemm{Agents: s.agents, M: s.n, N: s.k, K: s.m, Form: "tn", A: pdy, B: px, C: pdw,
					Epilogue: epilogue, Aux: pw, Factor: 0.01}.Call(),
					kernels.BiasGradient(s.agents, pdb, pdy, kernels.Operand{}, 0, s.m, s.n))
				for z := range s.agents {
					want, sums, in := make([]float32, s.n*s.k), make([]float32, s.n), [][]float32{x[z], dy[z], w[z]}
					if epilogue == kernels.NoEpilogue {
						in = in[:2]
					}
					onCPUCall(t, k, dims, 0.01, in, [][]float32{want, sums})
					nearSums(t, string(k), dw[z], want)
					nearSums(t, "gradient of the bias", db[z], sums)
				}
			}
		})
	}
}

// Large products use large blocks, with the same bits.
func TestGemmLarge(t *testing.T) {
	h := onHost(t)
	const m, n, k = 1300, 1250, 3
	for _, form := range []string{"nt", "nn", "tn"} {
		a, _ := each(h, 1, m*k, 0, 1)
		b, pb := each(h, 1, n*k, 0, 2)
		c, pc := each(h, 1, m*n, 0, 3)
		pa := kernels.Operand{At: at(h, a[0])} // one agent needs no list
		g := kernels.Gemm{Agents: 1, M: m, N: n, K: k, Form: form, A: pa, B: pb, C: pc}
		if call := g.Call(); call.Kernel.Name != "gemm_"+form+"_64" {
			t.Fatalf("%s for %d×%d", call.Kernel.Name, m, n)
		}
		h.run(g.Call())
		want := make([]float32, m*n)
		switch form {
		case "nt":
			onCPUCall(t, device.Linear, []int{m, n, k}, 0, [][]float32{a[0], b[0], make([]float32, n)},
				[][]float32{want})
		case "nn":
			onCPUCall(t, device.LinearGradX, []int{m, k, n}, 0, [][]float32{a[0], b[0]}, [][]float32{want})
		case "tn":
			onCPUCall(t, device.LinearGradW, []int{k, m, n}, 0, [][]float32{b[0], a[0]},
				[][]float32{want, make([]float32, m)})
		}
		sameBits(t, form, c[0], want)
	}
}

// Products of byte inputs equal products of their numbers.
func TestGemmBytes(t *testing.T) {
	h := onHost(t)
	const agents, m, n, k, stored = 2, 37, 12, 49, 90
	batch := device.Batch{Bytes: randomBytes(stored * k), Rows: make([]int32, agents*m), Scale: []float32{0.0127},
		Shift: []float32{-0.42}, Y: make([]int32, agents*m)}
	for i := range batch.Rows {
		batch.Rows[i] = int32(i * 7 % stored)
	}
	x := batch.Numbers(nil, k)
	byteInputs := &kernels.ByteInputs{Bytes: at(h, batch.Bytes), Rows: at(h, batch.Rows), Scale: batch.Scale[0],
		Shift: batch.Shift[0]}
	w, pw := each(h, agents, n*k, 0, 20)
	b, pb := each(h, agents, n, 0, 30)
	y, py := each(h, agents, m*n, 0, 40)
	dw, pdw := each(h, agents, n*k, 0, 80)
	db, pdb := each(h, agents, n, 0, 90)
	h.run(kernels.Gemm{Agents: agents, M: m, N: n, K: k, Form: "nt", Bytes: byteInputs, B: pw, C: py,
		Epilogue: kernels.BiasSigmoid, Aux: pb}.Call(),
		kernels.Gemm{Agents: agents, M: n, N: k, K: m, Form: "tn", A: py, Bytes: byteInputs, C: pdw}.Call(),
		kernels.BiasGradient(agents, pdb, py, kernels.Operand{}, 0, m, n))
	for z := range agents {
		xz := x[z*m*k : (z+1)*m*k]
		wantY, wantW, wantB := make([]float32, m*n), make([]float32, n*k), make([]float32, n)
		onCPUCall(t, device.LinearSigmoid, []int{m, n, k}, 0, [][]float32{xz, w[z], b[z]}, [][]float32{wantY})
		sameBits(t, "y", y[z], wantY)
		onCPUCall(t, device.LinearGradW, []int{m, n, k}, 0, [][]float32{xz, wantY}, [][]float32{wantW, wantB})
		nearSums(t, "dW", dw[z], wantW)
		nearSums(t, "db", db[z], wantB)
	}
}

// forms returns, for each storage order, the offsets of A[i][p] and B[p][j] of an m×k and a k×n
// matrix.
func forms(m, n, k int) map[string]func(i, j, p int) (a, b int) {
	return map[string]func(i, j, p int) (int, int){
		"nt": func(i, j, p int) (int, int) { return i*k + p, j*k + p },
		"nn": func(i, j, p int) (int, int) { return i*k + p, p*n + j },
		"tn": func(i, j, p int) (int, int) { return p*m + i, p*n + j },
	}
}

// rounded rounds to TF32.
func rounded(v float32) float64 {
	return float64(math.Float32frombits((math.Float32bits(v) + 0x1000) &^ 0x1fff))
}

// Products on tensor cores equal products of TF32 factors, except for the rounding of sums.
func TestGemmTF32(t *testing.T) {
	h := onHost(t)
	for _, s := range []struct{ agents, m, n, k int }{{2, 5, 3, 1}, {1, 70, 66, 50}, {3, 16, 10, 8}} {
		m, n, k := s.m, s.n, s.k
		for form, at3 := range forms(m, n, k) {
			a, pa := each(h, s.agents, m*k, 0, 1)
			b, pb := each(h, s.agents, n*k, 1, 11)
			c, pc := each(h, s.agents, m*n, 0, 21)
			h.run(kernels.Gemm{Agents: s.agents, M: m, N: n, K: k, Form: form, A: pa, B: pb, C: pc, TF32: true}.Call())
			for z := range s.agents {
				for i := range m {
					for j := range n {
						want, size := 0.0, 0.0
						for p := range k {
							x, y := at3(i, j, p)
							v := rounded(a[z][x]) * rounded(b[z][y])
							want, size = want+v, size+math.Abs(v)
						}
						if got := float64(c[z][i*n+j]); math.Abs(got-want) > float64(k+1)*0x1p-24*size {
							t.Fatalf("%s of %v, agent %d: element %d, %d is %v, want %v", form, s, z, i, j, got, want)
						}
					}
				}
			}
		}
	}
}

// Products of byte inputs on tensor cores equal products of their numbers.
func TestGemmBytesTF32(t *testing.T) {
	h := onHost(t)
	const m, n, k, stored = 37, 12, 49, 90
	batch := device.Batch{Bytes: randomBytes(stored * k), Rows: make([]int32, m), Scale: []float32{0.0127},
		Shift: []float32{-0.42}, Y: make([]int32, m)}
	for i := range batch.Rows {
		batch.Rows[i] = int32(i * 7 % stored)
	}
	x := kernels.Operand{At: at(h, batch.Numbers(nil, k))}
	byteInputs := &kernels.ByteInputs{Bytes: at(h, batch.Bytes), Rows: at(h, batch.Rows), Scale: batch.Scale[0],
		Shift: batch.Shift[0]}
	_, w := each(h, 1, n*k, 0, 20)
	_, dy := each(h, 1, m*n, 0, 30)
	var y, dw [2][]float32
	for i, b := range []*kernels.ByteInputs{nil, byteInputs} {
		var py, pw kernels.Address
		y[i], py = copied(h, make([]float32, m*n))
		dw[i], pw = copied(h, make([]float32, n*k))
		h.run(kernels.Gemm{Agents: 1, M: m, N: n, K: k, Form: "nt", A: x, Bytes: b, B: w, C: kernels.Operand{At: py},
			TF32: true}.Call(), kernels.Gemm{Agents: 1, M: n, N: k, K: m, Form: "tn", A: dy, B: x, Bytes: b,
			C: kernels.Operand{At: pw}, TF32: true}.Call())
	}
	sameBits(t, "y", y[1], y[0])
	sameBits(t, "dW", dw[1], dw[0])
}
