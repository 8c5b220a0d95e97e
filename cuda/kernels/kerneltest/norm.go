package kerneltest

import (
	"bytes"
	"fmt"

	"fspda/cuda/kernels"
)

// reluMasks computes the gradient of a normalisation with every source of the ReLU mask, and from a
// gradient in one part and in two: all have the same bits. There are more rows than a block
// handles, and rows are or are not whole packs.
func reluMasks(b *fixture) {
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, c := range []struct{ m, c int }{{700, 64}, {260, 136}, {140, 20}} {
			for _, epilogue := range []kernels.NormEpilogue{kernels.ReLU, kernels.AddReLU} {
				what := fmt.Sprintf("%v %d×%d epilogue %d", e, c.m, c.c, epilogue)
				n, in := normOn(b, e, c.m, c.c, epilogue)
				b.run(n.Statistics(), n.Apply())
				want := in.gradient(b, n)
				whole := c.c%e.Pack() == 0
				if epilogue == kernels.AddReLU {
					n.DY, n.Other = in.parts[0], in.parts[1]
					in.compare(b, what+", two summands", n, want)
				} else {
					reluFromInput := n
					reluFromInput.Y = 0
					in.compare(b, what+", mask from the input", reluFromInput, want)
				}
				if whole {
					n.Mask = at(b, make([]byte, n.MaskBytes()))
					b.run(n.Apply())
					n.Y = 0
					in.compare(b, what+", mask from bits", n, want)
				}
				b.release()
			}
		}
	}
}

// twoMaps adds the map of a second normalisation while it is computed, and from memory: the bits
// are the same.
func twoMaps(b *fixture) {
	for _, e := range []kernels.Element{kernels.F32, kernels.F16, kernels.BF16} {
		for _, c := range []struct{ m, c int }{{700, 64}, {140, 20}} {
			second, _ := normOn(b, e, c.m, c.c, kernels.Plain)
			first, _ := normOn(b, e, c.m, c.c, kernels.AddReLU)
			size := c.m * c.c * e.Size()
			separate, fused := make([]byte, size), make([]byte, size)
			first.Z, first.Y = second.Y, at(b, separate)
			calls := []kernels.Call{second.Statistics(), second.Apply(), first.Statistics(), first.Apply()}
			first.Z, first.Y = second.X, at(b, fused)
			first.MeanZ, first.ScaleZ, first.ShiftZ = second.Mean, second.Scale, second.Shift
			b.run(append(calls, first.Apply())...)
			if !bytes.Equal(fused, separate) || bytes.Equal(fused, make([]byte, size)) {
				b.Errorf("%v %d×%d: fusing two maps changes the bits", e, c.m, c.c)
			}
			b.release()
		}
	}
}

// normInputs holds inputs of a normalisation and outputs of its gradient.
type normInputs struct {
	parts   [2]kernels.Address // summands of dy
	dx, dz  []byte
	vectors []float32 // dgamma and dbeta
}

// normOn returns a normalisation of random numbers. dy is the sum of two parts.
func normOn(b *fixture, e kernels.Element, m, c int, epilogue kernels.NormEpilogue) (n kernels.Norm, in *normInputs) {
	raw := func(name string) []byte {
		var all []byte
		for _, v := range normals(fmt.Sprint(name, epilogue), m*c) {
			all = append(all, store(e, v)...)
		}
		return all
	}
	vector := func(name string) kernels.Address { return at(b, normals(name, c)) }
	empty := func() kernels.Address { return at(b, make([]float32, c)) }
	first, second := raw("dy"), raw("other")
	var sum []byte
	for i := 0; i < len(first); i += e.Size() {
		sum = append(sum, store(e, load(e, first[i:])+load(e, second[i:]))...)
	}
	in = &normInputs{parts: [2]kernels.Address{at(b, first), at(b, second)}, dx: make([]byte, len(sum)),
		dz: make([]byte, len(sum)), vectors: make([]float32, 2*c)}
	grads := at(b, in.vectors)
	n = kernels.Norm{Element: e, M: m, C: c, Eps: 1e-5, Epilogue: epilogue, X: at(b, raw("x")),
		Y: at(b, make([]byte, len(sum))),
		NormParams: kernels.NormParams{Gamma: vector("gamma"), Beta: vector("beta"), Mean: empty(), Variance: empty(),
			Scale: empty(), Shift: empty()},
		NormGrads: kernels.NormGrads{DY: at(b, sum), DX: at(b, in.dx), DGamma: grads,
			DBeta: grads + 4*kernels.Address(c), FactorA: empty(), FactorB: empty(), FactorE: empty()}}
	if epilogue == kernels.AddReLU {
		n.Z, n.DZ = at(b, raw("z")), at(b, in.dz)
	}
	n.Part, n.Arrived = at(b, make([]float64, n.PartNumbers())), at(b, make([]byte, n.ArrivedBytes()))
	return n, in
}

// gradient returns everything that the gradient writes, as bytes.
func (in *normInputs) gradient(b *fixture, n kernels.Norm) []byte {
	clear(in.dx)
	clear(in.dz)
	clear(in.vectors)
	b.run(n.Grad()...)
	all := append(bytes.Clone(in.dx), in.dz...)
	for _, v := range in.vectors {
		all = append(all, store(kernels.F32, v)...)
	}
	return all
}

func (in *normInputs) compare(b *fixture, what string, n kernels.Norm, want []byte) {
	if got := in.gradient(b, n); !bytes.Equal(got, want) {
		b.Errorf("%s: the gradient differs from that with the mask of the output", what)
	}
}
