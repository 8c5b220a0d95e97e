package kernels_test

import (
	"encoding/binary"
	"math"
	"testing"

	"fspda/cuda/kernels"
)

// Every 16-bit number survives conversion to float32 and back, and numbers in between are rounded
// to the nearest one, ties to even.
func TestCast(t *testing.T) {
	h := onHost(t)
	value := map[kernels.Element]func(bits int) float64{
		kernels.F16: func(b int) float64 {
			if e := b >> 10 & 31; e > 0 {
				return math.Ldexp(float64(1024+b&1023), e-25)
			}
			return math.Ldexp(float64(b&1023), -24)
		},
		kernels.BF16: func(b int) float64 { return float64(math.Float32frombits(uint32(b) << 16)) },
	}
	for e, infinity := range map[kernels.Element]int{kernels.F16: 31 << 10, kernels.BF16: 255 << 7} {
		raw := make([]byte, 2*65536)
		for b := range 65536 {
			binary.LittleEndian.PutUint16(raw[2*b:], uint16(b))
		}
		v := decode(h, e, raw)
		back, _ := encode(h, e, v)
		var between []float32
		for b := range infinity {
			if want := value[e](b); float64(v[b]) != want || v[0x8000|b] != -v[b] {
				t.Fatalf("%v: bits %#x are %v and with a sign %v, want %v", e, b, v[b], v[0x8000|b], want)
			}
			next := value[e](b + 1)
			if b == infinity-1 {
				next = 2*value[e](b) - value[e](b-1)
			}
			half := float32((value[e](b) + next) / 2)
			between = append(between, half, math.Nextafter32(half, 0), -math.Nextafter32(half, math.MaxFloat32))
		}
		for b := range 65536 {
			got := int(binary.LittleEndian.Uint16(back[2*b:]))
			if b&0x7fff > infinity { // NaN
				if got != 0x7fff || v[b] == v[b] {
					t.Fatalf("%v: bits %#x, a NaN, are %v and come back as %#x", e, b, v[b], got)
				}
			} else if got != b {
				t.Fatalf("%v: bits %#x come back as %#x", e, b, got)
			}
		}
		rounded, _ := encode(h, e, between)
		for i := range between {
			b := i / 3
			want := [...]int{b + b&1, b, 0x8000 | (b + 1)}[i%3]
			if got := int(binary.LittleEndian.Uint16(rounded[2*i:])); got != want {
				t.Fatalf("%v: %v becomes %#x, want %#x", e, between[i], got, want)
			}
		}
	}
}

// The loss scale is reduced if a gradient is not finite, which changes nothing else, and grows
// after enough good iterations.
func TestScaler(t *testing.T) {
	h := onHost(t)
	const n = 1003
	scaler := kernels.Scaler{Scale: 1024}.Bytes()
	step := func() kernels.Scaler {
		h.run(kernels.ScalerStep(at(h, scaler), 2, 0.5, 4096, 2))
		return kernels.ReadScaler(scaler)
	}
	g := numbers(1, n)
	scaled := make([]float32, n)
	for i := range g {
		scaled[i] = g[i] * 1024
	}
	raw, exact := encode(h, kernels.F16, scaled)
	x, l, u := numbers(2, n), numbers(3, n), numbers(4, n)
	// The gradient of the loss is scaled, and the result is divided by the scale, or zero after a
	// non-finite number.
	again, out := make([]byte, 2*n), make([]float32, n)
	widened := make([]float32, n)
	for i := range widened {
		widened[i] = exact[i] / 1024
	}
	h.run(kernels.Narrow(kernels.F16, at(h, again), at(h, g), at(h, scaler), n), kernels.Widen(kernels.F16, at(h, out),
		at(h, again), at(h, scaler), n))
	sameBits(t, "gradient of the loss", decode(h, kernels.F16, again), exact)
	sameBits(t, "gradient", out, widened)
	over := kernels.Scaler{Scale: 1024, Found: true}.Bytes()
	again[1] |= 0x7c
	h.run(kernels.Widen(kernels.F16, at(h, out), at(h, again), at(h, over), n))
	sameBits(t, "gradient where something was found", out, make([]float32, n))

	shadow := make([]byte, 2*n)
	run := func(raw []byte) (xs, us []float32) {
		gx, px := copied(h, x)
		gu, pu := copied(h, u)
		h.run(kernels.Check(kernels.F16, at(h, scaler), at(h, raw), n),
			kernels.UpdateHalf(kernels.F16, px, at(h, l), at(h, raw), pu, at(h, shadow), at(h, scaler), 0.1, 0.01, 0.9,
				n))
		return gx, gu
	}

	gotX, gotU := run(raw)
	for i := range exact {
		exact[i] *= 1. / 1024
	}
	wantX, px := copied(h, x)
	wantU, pu := copied(h, u)
	h.run(kernels.Update(px, at(h, l), at(h, exact), pu, 0.1, 0.01, 0.9, n))
	sameBits(t, "x", gotX, wantX)
	sameBits(t, "u", gotU, wantU)
	_, want := encode(h, kernels.F16, wantX)
	sameBits(t, "shadow", decode(h, kernels.F16, shadow), want)
	if s := step(); s != (kernels.Scaler{Scale: 1024, Good: 1}) {
		t.Errorf("%+v after a good iteration", s)
	}
	if s := step(); s != (kernels.Scaler{Scale: 2048}) {
		t.Errorf("%+v after two", s)
	}
	for at, bits := range map[int]uint16{n - 1: 0x7c00, 5: 0xfe00} { // infinity, NaN
		bad := append([]byte(nil), raw...)
		binary.LittleEndian.PutUint16(bad[2*at:], bits)
		before := append([]byte(nil), shadow...)
		gotX, gotU = run(bad)
		sameBits(t, "x of a skipped update", gotX, x)
		sameBits(t, "u of a skipped update", gotU, u)
		if string(before) != string(shadow) {
			t.Error("a skipped update changed the shadow")
		}
		step()
	}
	if s := kernels.ReadScaler(scaler); s != (kernels.Scaler{Scale: 512, Skipped: 2}) {
		t.Errorf("%+v after two that are not finite", s)
	}
	for range 20 {
		step()
	}
	if s := kernels.ReadScaler(scaler); s.Scale != 4096 {
		t.Errorf("%+v: want the scale to stop at 4096", s)
	}
}

func TestAddDiffShadow(t *testing.T) {
	h := onHost(t)
	const n = 300
	idx := everyThird(n)
	k := len(idx)
	own, other := numbers(1, k), numbers(2, k)
	for _, e := range []kernels.Element{kernels.F16, kernels.BF16} {
		x, px := copied(h, numbers(3, n))
		l, pl := copied(h, numbers(4, n))
		shadow, _ := encode(h, e, x)
		wantX, pwx := copied(h, x)
		wantL, pwl := copied(h, l)
		h.run(kernels.AddDiffShadow(e, at(h, own), at(h, other), at(h, idx), k, kernels.Term{A: -0.5, V: px},
			kernels.Term{A: 0.7, V: pl}, at(h, shadow)),
			kernels.AddDiff(at(h, own), at(h, other), at(h, idx), k, kernels.Term{A: -0.5, V: pwx},
				kernels.Term{A: 0.7, V: pwl}))
		sameBits(t, "x", x, wantX)
		sameBits(t, "lambda", l, wantL)
		_, want := encode(h, e, x)
		sameBits(t, "shadow", decode(h, e, shadow), want)
	}
}
