package kerneltest

import (
	"math"

	"fspda/cuda/kernels"
)

// gradPieces finishes pieces of a gradient: from 16 bits with and without padding, from float32,
// and in place; with and without decay, scaled and not; with lengths and offsets that allow and do
// not allow 16-byte accesses. One number may be infinite.
func gradPieces(b *fixture) {
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		for _, bad := range []int{-1, 0, 20003, gradDim - 1} {
			g := newGradInputs(e, bad)
			var list []byte
			count, to := 0, 0
			for _, s := range []kernels.GradPiece{
				{Source: kernels.FromHalf, From: 64, N: 16384 + 8, C: 1, Padded: 1, Scaled: true, Decay: gradDecay},
				{Source: kernels.FromHalf, From: 20001, N: 3 * 1203, C: 3, Padded: 4, Scaled: true, Weights: -1},
				{Source: kernels.FromFloat32, From: gradDim, N: 5000, C: 1, Padded: 1, Decay: gradDecay},
				{Source: kernels.InPlace, N: gradDim - 16392 - 3609 - 5000, C: 1, Padded: 1, Scaled: true,
					Decay: gradDecay},
			} {
				if s.To = to; s.Weights >= 0 {
					s.Weights = to
				}
				if s.Source == kernels.InPlace {
					s.From = to
				}
				for i := range s.N {
					g.store(s, i)
				}
				to += s.N
				for _, piece := range s.Split() {
					list = piece.AppendTo(list)
					count++
				}
			}
			scaler := kernels.Scaler{Scale: gradScale}.Bytes()
			b.run(kernels.FinishGradient(e, at(b, g.grads), at(b, g.arena), at(b, g.params), at(b, list),
				at(b, scaler), count))
			if found := kernels.ReadScaler(scaler).Found; found != (bad >= 0) {
				b.Errorf("%v: number %d is infinite: found %v", e, bad, found)
			}
			sameBits(b, "finished gradient", g.grads, g.want)
		}
	}
}

const (
	gradDim, gradScale = 30011, 1024
	gradDecay          = float32(0.25)
)

// gradInputs holds the operands of FinishGradient, and its expected result.
type gradInputs struct {
	element                     kernels.Element
	bad                         int // index of the infinite number, or -1
	values, params, grads, want []float32
	arena                       []byte
}

func newGradInputs(e kernels.Element, bad int) *gradInputs {
	return &gradInputs{element: e, bad: bad, values: normals("gradient", gradDim),
		params: normals("parameters", gradDim),
		grads:  make([]float32, gradDim), want: make([]float32, gradDim), arena: make([]byte, 4*3*gradDim)}
}

// store writes number i of a piece to its source, and the finished number to want.
func (g *gradInputs) store(s kernels.GradPiece, i int) {
	k, at := s.To+i, s.From+i/s.C*s.Padded+i%s.C
	v := g.values[k]
	if k == g.bad {
		v = float32(math.Inf(-1))
	}
	if s.Scaled {
		v *= gradScale
	}
	switch s.Source {
	case kernels.FromHalf:
		raw := store(g.element, v)
		copy(g.arena[2*at:], raw)
		v = load(g.element, raw)
	case kernels.FromFloat32:
		copy(g.arena[4*at:], store(kernels.F32, v))
	case kernels.InPlace:
		g.grads[k] = v
	}
	if s.Scaled {
		v /= gradScale
	}
	if g.want[k] = v; s.Weights >= 0 {
		g.want[k] = v + float32(gradDecay*g.params[k])
	}
}

// moves updates moving averages of many lengths.
func moves(b *fixture) {
	lengths := []int{1, 64, 256, 1000, 2048}
	arena, buffers, momentum := normals("statistics", 4000), normals("buffers", 4000), []float32{0.1}
	want := append([]float32(nil), buffers...)
	var list []byte
	from, to := 17, 0
	for i, n := range lengths {
		m := kernels.Move{X: from, Buffer: to, N: n, A: 1 + float64(i)/64}
		list = m.AppendTo(list)
		for j := range n {
			k := float64(momentum[0])
			want[to+j] = float32((1-k)*float64(buffers[to+j]) + k*(m.A*float64(arena[from+j])))
		}
		from, to = from+n, to+n+3
	}
	b.run(kernels.MoveAverages(at(b, buffers), at(b, arena), at(b, momentum), at(b, list), len(lengths)))
	sameBits(b, "moved buffers", buffers, want)
}

// penalties adds the squares of more tensors to a loss than a block has threads, and compares with
// one launch or two per tensor.
func penalties(b *fixture) {
	const tensors = 300
	params := normals("parameters", 5*4096+tensors*37)
	part := make([]float64, 5+2*tensors)
	var all []kernels.Penalty
	from := 0
	for i := range tensors {
		n := 1 + 37*(i%2)
		if i == 7 {
			n = 4*4096 + 5
		}
		all = append(all, kernels.Penalty{From: from, N: n, Scale: 1e-4 + float64(i)/1e5})
		from += n
	}
	one, listed := []float32{2.5}, []float32{2.5}
	term, list := make([]float32, 1), kernels.NewPenalties(all)
	x, scratch := at(b, params), at(b, part)
	var calls []kernels.Call
	for _, p := range all {
		dot := kernels.Dot(0, at(b, term), x+4*kernels.Address(p.From), x+4*kernels.Address(p.From), scratch, p.N,
			p.Scale)
		calls = append(calls, dot[0], dot[1], kernels.Add(at(b, one), at(b, one), at(b, term), 1))
	}
	if n := list.PartNumbers(); n > len(part) {
		b.Fatalf("the list needs %d numbers of scratch, have too few", n)
	}
	b.run(append(calls, list.Add(at(b, listed), at(b, listed), x, at(b, list.Bytes()), scratch)...)...)
	sameBits(b, "loss with penalties", listed, one)
}
