package devicetest

import (
	"math"
	"testing"
)

// The table has the known numbers of convolutions, parameters and operations of ResNet-50.
func TestResNet50(t *testing.T) {
	count, parameters, flops := 0, 0, 0.0
	for _, s := range ResNet50(2) {
		count += s.Count
		parameters += s.Count * s.K * s.R * s.S * s.C
		flops += float64(s.Count) * s.FLOPs()
		if s.N != 2 || len(s.Dims()) != 9 {
			t.Errorf("%+v: dimensions %v", s, s.Dims())
		}
	}
	// 25,557,032 parameters, less 53,120 of the batch norms and 2,049,000 of the last layer; 4.09
	// billion products an image, less 2 million.
	if count != 53 || parameters != 25557032-53120-2049000 || math.Abs(flops/2/2-4.087e9) > 2e6 {
		t.Errorf("%d convolutions with %d parameters and %.4g products an image", count, parameters, flops/4)
	}
}

func TestConvShapeOut(t *testing.T) {
	for _, c := range []struct {
		s    ConvShape
		p, q int
	}{
		{ConvShape{N: 1, H: 224, W: 224, R: 7, S: 7, Stride: 2, Pad: 3}, 112, 112},
		{ConvShape{N: 1, H: 9, W: 12, R: 3, S: 2, Stride: 3, Pad: 0}, 3, 4},
	} {
		if p, q := c.s.Out(); p != c.p || q != c.q {
			t.Errorf("%+v gives %d×%d, want %d×%d", c.s, p, q, c.p, c.q)
		}
	}
}
