package dist

import (
	"math"
	"testing"

	"fspda/internal/rng"
)

// Q(v) is the mean magnitude of a block times the sign of each coordinate; +1 for both zeros. It is
// by |v|₁²/(m·|v|²) nearer to v than zero is.
func TestSign(t *testing.T) {
	c, err := ParseCompressor("sign", CompressorOptions{Sizes: []int{4, 2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	v := []float32{1, -2, 0, float32(math.Copysign(0, -1)), 0, 0, -3}
	var p Payload
	if err := c.Compress(&p, v, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	for k, want := range []float32{0.75, -0.75, 0.75, 0.75, 0, 0, -3} {
		if !sameBits(p.Vectors[0][k], want) {
			t.Errorf("coordinate %d becomes %v, want %v", k, p.Vectors[0][k], want)
		}
	}
	v[2] = float32(math.Inf(1))
	if c.Compress(&p, v, 0, 0, 0) == nil {
		t.Error("an infinity was compressed")
	}
	s, m := rng.New(4, "sign"), 1000
	one, err := ParseCompressor("sign", CompressorOptions{Sizes: []int{m}})
	if err != nil {
		t.Fatal(err)
	}
	for _, heavy := range []float64{0, 2} {
		v, gap, square, sum := make([]float32, m), 0.0, 0.0, 0.0
		for k := range v {
			v[k] = float32(s.Norm() * math.Exp(heavy*s.Norm()))
		}
		if err := one.Compress(&p, v, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		for k, x := range v {
			gap += math.Pow(float64(x-p.Vectors[0][k]), 2)
			square += float64(x) * float64(x)
			sum += math.Abs(float64(x))
		}
		delta := sum * sum / (float64(m) * square)
		if got := 1 - gap/square; math.Abs(got-delta) > 1e-5 || heavy == 0 && math.Abs(got-one.Delta()) > 0.05 {
			t.Errorf("it is %.4f nearer to v than zero, want %.4f; %.4f if v is normal", got, delta, one.Delta())
		}
	}
}
