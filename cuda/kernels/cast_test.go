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
