package kerneltest

import (
	"encoding/binary"
	"math"

	"fspda/cuda/kernels"
)

// load decodes a number of an element.
func load(e kernels.Element, b []byte) float32 {
	switch e {
	case kernels.F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case kernels.BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16)
	}
	bits := int(binary.LittleEndian.Uint16(b))
	sign, exponent, digits := 1-2*float64(bits>>15), bits>>10&31, float64(bits&1023)
	switch exponent {
	case 0:
		return float32(sign * math.Ldexp(digits, -24))
	case 31:
		if digits != 0 {
			return float32(math.NaN())
		}
		return float32(math.Inf(int(sign)))
	}
	return float32(sign * math.Ldexp(1024+digits, exponent-25))
}

// store rounds to the nearest number of an element, ties to even, and encodes it.
func store(e kernels.Element, v float32) []byte {
	bits := math.Float32bits(v)
	switch {
	case e == kernels.F32:
		return binary.LittleEndian.AppendUint32(nil, bits)
	case v != v:
		return []byte{0xff, 0x7f}
	case e == kernels.BF16:
		return binary.LittleEndian.AppendUint16(nil, uint16((bits+0x7fff+bits>>16&1)>>16))
	}
	return binary.LittleEndian.AppendUint16(nil, uint16(bits>>16&0x8000)|half(math.Abs(float64(v))))
}

// half returns the bits of |v| in F16.
func half(v float64) uint16 {
	_, exponent := math.Frexp(v)
	unit := math.Ldexp(1, max(exponent-11, -24)) // the value of the last digit
	digits := math.RoundToEven(v / unit)
	if rounded := digits * unit; rounded >= 65520 || math.IsInf(v, 0) {
		return 31 << 10
	}
	if digits < 1024 {
		return uint16(digits)
	}
	if digits == 2048 {
		digits, exponent = 1024, exponent+1
	}
	return uint16(max(exponent+14, 1)<<10) + uint16(digits) - 1024
}

// everyHalf widens every 16-bit number and narrows it again, and narrows numbers in between.
func everyHalf(b *fixture) {
	const n = 1 << 16
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		raw, wide, back := make([]byte, 2*n), make([]float32, n), make([]byte, 2*n)
		for i := range n {
			binary.LittleEndian.PutUint16(raw[2*i:], uint16(i))
		}
		b.run(kernels.Widen(e, at(b, wide), at(b, raw), n), kernels.Narrow(e, at(b, back), at(b, wide), n))
		want := make([]float32, n)
		for i := range want {
			want[i] = load(e, raw[2*i:])
		}
		sameBits(b, e.String()+" as float32", wide, want)
		sameHalves(b, e, back, want)
		between := make([]float32, 0, 2*n)
		for i, v := range want[:n-1] {
			middle := float32((float64(v) + float64(want[i+1])) / 2)
			between = append(between, middle, math.Nextafter32(middle, 0))
		}
		rounded := make([]byte, 2*len(between))
		b.run(kernels.Narrow(e, at(b, rounded), at(b, between), len(between)))
		sameHalves(b, e, rounded, between)
	}
}

// sameHalves reports the first number that was not rounded as by store.
func sameHalves(b *fixture, e kernels.Element, got []byte, from []float32) {
	for i, v := range from {
		if want := store(e, v); got[2*i] != want[0] || got[2*i+1] != want[1] {
			b.Errorf("%v: %v becomes %#x, want %#x", e, v, binary.LittleEndian.Uint16(got[2*i:]),
				binary.LittleEndian.Uint16(want))
			return
		}
	}
}

// lossScale checks that the scale grows, is reduced if a gradient is not finite, and stops at its
// maximum.
func lossScale(b *fixture) {
	const n = 1003
	scaler, gradient := kernels.Scaler{Scale: 1024}.Bytes(), numbers(1, n)
	half16, scaled, out := make([]byte, 2*n), make([]float32, n), make([]float32, n)
	list := kernels.GradPiece{Source: kernels.FromHalf, Weights: -1, N: n, C: 1, Padded: 1, Scaled: true}.AppendTo(nil)
	step := func(corrupt func([]byte)) kernels.Scaler {
		b.run(kernels.ScaleBy(at(b, scaled), at(b, gradient), at(b, scaler), 1, n),
			kernels.Narrow(kernels.F16, at(b, half16), at(b, scaled), n))
		corrupt(half16)
		b.run(kernels.FinishGradient(kernels.F16, at(b, out), at(b, half16), 0, at(b, list), at(b, scaler), 1),
			kernels.ZeroIfInf(at(b, out), at(b, scaler), n), kernels.ScalerStep(at(b, scaler), 2, 0.5, 4096, 2))
		return kernels.ReadScaler(scaler)
	}
	same := func(what string, got, want kernels.Scaler) {
		if got != want {
			b.Errorf("loss scale %s: %+v, want %+v", what, got, want)
		}
	}
	same("after a good iteration", step(func([]byte) {}), kernels.Scaler{Scale: 1024, Good: 1})
	want := make([]float32, n)
	for i, g := range gradient {
		want[i] = load(kernels.F16, store(kernels.F16, 1024*g)) / 1024
	}
	sameBits(b, "gradient", out, want)
	same("after two", step(func([]byte) {}), kernels.Scaler{Scale: 2048})
	same("after an infinity", step(func(g []byte) { binary.LittleEndian.PutUint16(g[2*(n-1):], 0x7c00) }),
		kernels.Scaler{Scale: 1024, Skipped: 1})
	sameBits(b, "gradient with an infinity in it", out, make([]float32, n))
	same("after a NaN", step(func(g []byte) { binary.LittleEndian.PutUint16(g, 0xfe00) }),
		kernels.Scaler{Scale: 512, Skipped: 2})
	for range 20 {
		step(func([]byte) {})
	}
	same("at its largest", kernels.ReadScaler(scaler), kernels.Scaler{Scale: 4096, Skipped: 2,
		Good: kernels.ReadScaler(scaler).Good})
}
