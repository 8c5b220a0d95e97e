package kerneltest

import (
	"math"

	"fspda/cuda/kernels"
)

// endings brings pieces of a gradient to their final form: from 16 bits with and without room for
// more channels, from float32, and in place; with and without decay, scaled and not; of lengths and
// at places that can and cannot be read in fours.
func gradPieces(b *fixture) {
	const dim, scale, decay = 30011, 1024, float32(0.25)
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		for _, bad := range []int{-1, 0, 20003, dim - 1} {
			params, g := normals("parameters", dim), normals("gradient", dim)
			arena := make([]byte, 4*3*dim)
			grads, want := make([]float32, dim), make([]float32, dim)
			var list []byte
			count, to := 0, 0
			for _, s := range []kernels.GradPiece{
				{Source: kernels.FromHalf, From: 64, N: 16384 + 8, C: 1, Padded: 1, Scaled: true, Decay: decay},
				{Source: kernels.FromHalf, From: 20001, N: 3 * 1203, C: 3, Padded: 4, Scaled: true, Weights: -1},
				{Source: kernels.FromFloat32, From: dim, N: 5000, C: 1, Padded: 1, Decay: decay},
				{Source: kernels.InPlace, N: dim - 16392 - 3609 - 5000, C: 1, Padded: 1, Scaled: true, Decay: decay},
			} {
				if s.To = to; s.Weights >= 0 {
					s.Weights = to
				}
				if s.Source == kernels.InPlace {
					s.From = to
				}
				for i := range s.N {
					v := g[to+i]
					if to+i == bad {
						v = float32(math.Inf(-1))
					}
					if s.Scaled {
						v *= scale
					}
					at := s.From + i/s.C*s.Padded + i%s.C
					switch s.Source {
					case kernels.FromHalf:
						raw := store(e, v)
						copy(arena[2*at:], raw)
						v = load(e, raw)
					case kernels.FromFloat32:
						copy(arena[4*at:], store(kernels.F32, v))
					case kernels.InPlace:
						grads[to+i] = v
					}
					if s.Scaled {
						v /= scale
					}
					if want[to+i] = v; s.Weights >= 0 {
						want[to+i] = v + float32(decay*params[to+i])
					}
				}
				to += s.N
				for _, piece := range s.Split() {
					list = piece.AppendTo(list)
					count++
				}
			}
			scaler := kernels.Scaler{Scale: scale}.Bytes()
			b.run(kernels.FinishGradient(e, at(b, grads), at(b, arena), at(b, params), at(b, list), at(b, scaler), count))
			if found := kernels.ReadScaler(scaler).Found; found != (bad >= 0) {
				b.Errorf("%v: number %d is infinite: found %v", e, bad, found)
			}
			sameBits(b, "ended gradient", grads, want)
		}
	}
}

// moves moves buffers of many lengths by the statistics of a batch.
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

// penalties adds the squares of more tensors to a loss than a block has threads, as a launch or two
// for each would.
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
		b.Errorf("the list wants %d numbers of scratch", n)
		return
	}
	b.run(append(calls, list.Add(at(b, listed), at(b, listed), x, at(b, list.Bytes()), scratch)...)...)
	sameBits(b, "loss with penalties", listed, one)
}
