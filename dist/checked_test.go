package dist

import (
	"math"
	"testing"

	"fspda/internal/rng"
)

// Every value that is not finite is found at its place, in each format, and no finite one is taken
// for it.
func TestFirstNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	nan := math.Float32frombits(infinity | 1<<22)
	s := rng.New(1, "finite")
	for _, f := range []ValueFormat{FP32, FP16, BF16, ""} {
		for n := range 70 {
			v := make([]float32, n)
			for i := range v {
				v[i] = math.Float32frombits(uint32(s.Uint64()))
				if f == FP16 || !finite(v[i]) {
					v[i] = float32(s.Float64()-0.5) * 1e5
				}
			}
			f.Round(v)
			if at := f.FirstNotFinite(f.Append(nil, v)); at != -1 {
				t.Fatalf("%s: value %d of %v is not finite", f, at, v)
			}
			if n == 0 {
				continue
			}
			first := s.IntN(n)
			for _, bad := range []float32{inf, -inf, nan} {
				w := append([]float32{}, v...)
				w[first], w[n-1] = bad, bad
				if at := f.FirstNotFinite(f.Append(nil, w)); at != first {
					t.Errorf("%s: the first of %d values is %d, want %d", f, n, at, first)
				}
			}
		}
	}
}

func BenchmarkFirstNotFinite(b *testing.B) {
	text := FP32.Append(nil, make([]float32, 1<<20))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if FP32.FirstNotFinite(text) >= 0 {
			b.Fatal("zeros are not finite")
		}
	}
}
