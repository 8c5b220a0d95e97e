package kernels_test

import (
	"math"
	"slices"
	"testing"

	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/dist"
)

// formats lists the wire formats that round like elements.
var formats = map[kernels.Element]dist.ValueFormat{kernels.F16: dist.FP16, kernels.BF16: dist.BF16}

// 16-bit products equal products of rounded factors, except for the rounding of sums. Epilogues
// compute in float32. Column sums are sums of the rounded factors.
func TestGemmHalf(t *testing.T) {
	h := onHost(t)
	for e, format := range formats {
		for _, s := range []struct{ agents, m, n, k int }{{2, 5, 3, 1}, {1, 70, 66, 50}, {3, 16, 10, 17}} {
			m, n, k := s.m, s.n, s.k
			for form, at3 := range forms(m, n, k) {
				a, pa := each(h, s.agents, m*k, 0, 1)
				b, pb := each(h, s.agents, n*k, 1, 11)
				c, pc := each(h, s.agents, m*n, 0, 21)
				sums, psums := each(h, s.agents, m, 0, 31)
				with, pwith := each(h, s.agents, m*n, 0, 41)
				g := kernels.Gemm{Agents: s.agents, M: m, N: n, K: k, Form: form, A: pa, B: pb, C: pc, Element: e,
					Epilogue: kernels.AddScaled, Aux: pwith, Factor: 0.5, Round: form != "tn"}
				if form == "tn" {
					g.Sums = psums
				}
				h.run(g.Call())
				for z := range s.agents {
					x, y := slices.Clone(a[z]), slices.Clone(b[z])
					format.Round(x)
					format.Round(y)
					for i := range m {
						for j := range n {
							want, size := 0.5*float64(with[z][i*n+j]), 0.0
							for p := range k {
								l, r := at3(i, j, p)
								v := float64(x[l]) * float64(y[r])
								want, size = want+v, size+math.Abs(v)
							}
							got, bound := c[z][i*n+j], float64(k+2)*0x1p-24*(size+math.Abs(want))
							if g.Round {
								one := []float32{got}
								if format.Round(one); one[0] != got {
									t.Fatalf("%s %s: %v is not rounded", e, form, got)
								}
								bound += map[kernels.Element]float64{kernels.F16: 0x1p-11,
									kernels.BF16: 0x1p-8}[e] * math.Abs(want)
							}
							if math.Abs(float64(got)-want) > bound {
								t.Fatalf("%s %s of %v, agent %d: element %d, %d is %v, want %v", e, form, s, z, i, j,
									got, want)
							}
						}
					}
					if form == "tn" {
						want, dw := make([]float32, m), make([]float32, m*n)
						onCPUCall(t, device.LinearGradW, []int{k, m, n}, 0, [][]float32{y, x}, [][]float32{dw, want})
						sameBits(t, "column sums", sums[z], want)
					}
				}
			}
		}
	}
}

// Gradient products are divided by the loss scale of their agent, whose Scaler records non-finite
// numbers; the epilogue's summand is not divided.
func TestGemmHalfScaled(t *testing.T) {
	h := onHost(t)
	const agents, m, n, k = 3, 9, 70, 20
	a, pa := each(h, agents, m*k, 0, 1)
	_, pb := each(h, agents, n*k, 0, 11)
	c, pc := each(h, agents, m*n, 0, 21)
	plain, pplain := each(h, agents, m*n, 0, 21)
	sums, psums := each(h, agents, m, 0, 31)
	_, pwith := each(h, agents, m*n, 0, 41)
	a[1][7] = 1e6 // overflows float16
	var list []kernels.Address
	var states [][]byte
	for z := range agents {
		b, p := copied(h, kernels.Scaler{Scale: 8, Good: z}.Bytes())
		states, list = append(states, b), append(list, p)
	}
	g := kernels.Gemm{Agents: agents, M: m, N: n, K: k, Form: "tn", A: pa, B: pb, C: pplain, Element: kernels.F16}
	h.run(g.Call())
	g.C, g.Sums, g.Scalers, g.Epilogue, g.Aux, g.Factor = pc, psums, at(h, list), kernels.AddScaled, pwith, 0
	h.run(g.Call())
	for z := range agents {
		if found := kernels.ReadScaler(states[z]).Found; found != (z == 1) {
			t.Errorf("agent %d: found something: %v", z, found)
		}
		if z == 1 {
			continue
		}
		for i := range c[z] {
			if c[z][i] != plain[z][i]/8 {
				t.Fatalf("agent %d: %v, want an eighth of %v", z, c[z][i], plain[z][i])
			}
		}
		if math.IsInf(float64(sums[z][0]), 0) {
			t.Error("the sums are infinite")
		}
	}
	g.Aux, g.Factor, g.Epilogue = kernels.Operand{}, 0, kernels.NoEpilogue
	out := make([]byte, agents*kernels.ScalerBytes)
	f := kernels.Group{Agents: agents, Grads: pc.List, Half: &kernels.GroupHalf{Element: kernels.F16,
		Scaling: &kernels.Scaling{Scalers: at(h, list), States: at(h, out),
			Growth: 2, Backoff: 0.5, Largest: 1 << 24, Interval: 3}}}
	ends, err := f.Lower(&device.Code{Dim: m * n})
	if err != nil {
		t.Fatal(err)
	}
	h.run(ends...)
	for z, want := range []kernels.Scaler{{Scale: 8, Good: 1}, {Scale: 4, Skipped: 1}, {Scale: 16}} {
		got := kernels.ReadScaler(states[z])
		if got != want || kernels.ReadScaler(out[z*kernels.ScalerBytes:]) != want {
			t.Errorf("agent %d: %+v, want %+v", z, got, want)
		}
		if zero := slices.Equal(c[z], make([]float32, m*n)); zero != (z == 1) {
			t.Errorf("agent %d: the gradient is zero: %v", z, zero)
		}
	}
}
