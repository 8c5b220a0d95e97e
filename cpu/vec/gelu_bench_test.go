package vec

import "testing"

// Elements of the first-level cache: nanoseconds of one.
func BenchmarkGELU(b *testing.B) {
	x, dy, y := make([]float32, 2048), make([]float32, 2048), make([]float32, 2048)
	for i := range x {
		x[i], dy[i] = float32(i)/512-2, 1
	}
	for _, f := range []struct {
		name string
		run  func()
	}{
		{"tanh", func() { GELUs(Tanh, y, x) }}, {"tanh-grad", func() { GELUGrads(Tanh, y, x, dy) }},
		{"erf", func() { GELUs(Erf, y, x) }}, {"erf-grad", func() { GELUGrads(Erf, y, x, dy) }},
	} {
		b.Run(f.name, func(b *testing.B) {
			for b.Loop() {
				f.run()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/element")
		})
	}
}

// Rows of attention in the first-level cache: nanoseconds of one exponential.
func BenchmarkExpRows(b *testing.B) {
	const rows, n = 52, 39
	x, e, tops, sums := make([]float32, rows*n), make([]float32, rows*n), make([]float32, rows), make([]float64, rows)
	for i := range x {
		x[i] = -float32(i%n) / 8
	}
	for b.Loop() {
		ExpRows(e, sums, x, tops, n)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x)), "ns/element")
}
