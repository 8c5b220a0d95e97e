package kerneltest

import (
	"bytes"
	"math"

	"fspda/cuda/kernels"
)

// segments rounds tensors of a vector to 16 bits, one of them long and one padded with a fourth
// channel, and removes the padding again.
func segments(b *fixture) {
	const long, rows = 20001, 5003
	src := normals("segments", long+3+3*rows)
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		var table []byte
		count := 0
		for _, s := range []kernels.Segment{{From: 0, To: 128, N: long, C: 1, Padded: 1},
			{From: long + 3, To: 128 + long + 7, N: 3 * rows, C: 3, Padded: 4}} {
			for _, piece := range s.Split() {
				table = piece.AppendTo(table)
				count++
			}
		}
		padded := 128 + long + 7
		dst, pad, crop := bytes.Repeat([]byte{0x55}, 2*(padded+4*rows+8)), make([]byte, 8*rows), make([]float32, 3*rows)
		want := bytes.Repeat([]byte{0x55}, len(dst))
		for i := range long {
			copy(want[2*(128+i):], store(e, src[i]))
		}
		for i := range 4 * rows {
			v := float32(0)
			if i%4 < 3 {
				v = src[long+3+i/4*3+i%4]
			}
			copy(want[2*(padded+i):], store(e, v))
		}
		numbers := at(b, src)
		b.run(kernels.NarrowSegments(e, at(b, dst), numbers, at(b, table), count),
			kernels.Pad(e, at(b, pad), numbers+4*(long+3), rows, 3, 4),
			kernels.Crop(e, at(b, crop), at(b, pad), rows, 3, 4))
		if !bytes.Equal(dst, want) || !bytes.Equal(pad, want[2*padded:][:8*rows]) {
			b.Errorf("%v: segments are not rounded correctly", e)
		}
		for i, v := range crop {
			if v != load(e, store(e, src[long+3+i])) {
				b.Errorf("%v: number %d without the fourth channel is %v", e, i, v)
				break
			}
		}
	}
}

// unscaling divides gradients by the loss scale, finds non-finite numbers, and then zeroes the
// gradients; and adds a decay that is not scaled.
func unscaling(b *fixture) {
	const n = 1031
	for _, bad := range []int{-1, 0, n - 1, 512} {
		g, decay := normals("gradient", n), normals("decay", n)
		want := make([]float32, n)
		for i := range g {
			want[i] = g[i] + float32(0.25*decay[i])
			g[i] *= 1024
		}
		if bad >= 0 {
			g[bad] = float32(math.Inf(1))
		}
		scaler := kernels.Scaler{Scale: 1024}.Bytes()
		scale, to := at(b, scaler), at(b, g)
		list := kernels.GradPiece{Source: kernels.InPlace, Weights: -1, N: n, C: 1, Padded: 1,
			Scaled: true}.AppendTo(nil)
		b.run(kernels.ScaledSum(to, to, at(b, decay), 0, scale, 1, 0.25, n),
			kernels.FinishGradient(kernels.F16, to, 0, 0, at(b, list), scale, 1), kernels.ZeroIfInf(to, scale, n))
		found := kernels.ReadScaler(scaler).Found
		if found != (bad >= 0) {
			b.Errorf("number %d is infinite: found %v", bad, found)
		}
		for i, v := range g {
			w := want[i]
			if bad >= 0 {
				w = 0
			}
			if math.Abs(float64(v-w)) > 1e-6*(1+math.Abs(float64(w))) {
				b.Errorf("number %d is infinite: gradient %d is %v, want %v", bad, i, v, w)
				break
			}
		}
	}
}
