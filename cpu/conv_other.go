//go:build !amd64 || noasm

package cpu

func slideOver(l *slide, src, w, out, scratch []float32) { slidePlain(l, src, w, out, scratch) }

func slideScratch(l *slide) int { return slidePlainScratch(l) }

func sumOver(v *convolution, x, dy, dw, scratch []float32, part, of int) {
	sumPlain(v, x, dy, dw, scratch, part, of)
}

func sumScratch(v *convolution) int { return sumPlainScratch(v) }
