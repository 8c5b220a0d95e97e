package norm

import (
	"strings"
	"testing"

	"fspda/cpu/isa"
	"fspda/internal/testing/kerneltest"
)

// The assembly is not called on slices that are shorter than what it reads.
func TestNormLoopsCheckLengths(t *testing.T) {
	for _, k := range isa.Available() {
		if k == isa.Go {
			continue
		}
		loops := &asmLoops
		x, sums := make([]float32, 64), make([]float64, 16)
		p := windows{pixels: 2, channels: 16, rows: 1, cols: 1, rowStride: 32, step: 32, colStep: 1}
		for name, f := range map[string]func(){
			"a short matrix":      func() { loops.sums(span{16, 5, 16, 64}, x, sums) },
			"no row":              func() { loops.sums(span{16, 0, 1, 64}, x, sums) },
			"sums of half a line": func() { loops.sums(span{16, 4, 16, 64}, x, sums[:8]) },
			"a fold of half":      func() { loops.fold(sums[:8], sums[8:]) },
			"windows beyond x":    func() { loops.maxPool(p, x[:47], x, x) },
			"part of a vector":    func() { loops.affine[1][plain](span{16, 4, 15, 0}, x, nil, x, x, x, x) },
			"part of another": func() {
				loops.gradient[1][plain](span{16, 4, 15, 0}, x, x, nil, x, x, x, x, x)
			},
			"places beyond at":  func() { loops.maxPool(p, x, x, x[:31]) },
			"a pixel beyond dx": func() { loops.maxPoolGrad[0](p, x, x, x[:47]) },
			"windows beyond dy": func() { loops.maxPoolGrad[0](p, x[:31], x, x) },
		} {
			var got string
			isa.With(k, func() { got = kerneltest.Panic(t, f) })
			if !strings.HasPrefix(got, "cpu: ") {
				t.Errorf("%s, %s: panic %q", k, name, got)
			}
		}
	}
}
