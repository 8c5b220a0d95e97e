//go:build !amd64 || noasm || fspda_noasm

package conv

func correlate(l *correlation, src, w, out, scratch []float32) {
	plainCorrelation(l, src, w, out, scratch)
}

func correlationScratch(l *correlation) int { return plainScratch(l) }

func weightGradient(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	plainWeightGradient(v, x, dy, dw, scratch, part, of)
}

func weightGradScratch(v *convolution) int { return plainWeightGradScratch(v) }
