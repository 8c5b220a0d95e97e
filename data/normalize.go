package data

import (
	"fmt"
	"math"
)

// normalizer turns pixels into the numbers a network sees: (p/255 - mean)/std, computed as scale·p + shift with the product
// rounded before the sum. So the table and the vector code give the same bits.
type normalizer struct {
	scale, shift float32
	table        [256]float32

	scales, shifts [1]float32 // the same for a device.Batch
}

func newNormalizer(mean, std float32) (*normalizer, error) {
	m, s := float64(mean), float64(std)
	scale, shift := float32(1/(255*s)), float32(-m/s)
	// The bounds of a usable scale also catch a NaN.
	if !(s > 0 && scale > 1e-30 && scale < 1e30 && math.Abs(float64(shift)) < 1e30) {
		return nil, fmt.Errorf("normalisation with mean %v and std %v, want a finite mean and a positive std", mean, std)
	}
	n := &normalizer{scale: scale, shift: shift, scales: [1]float32{scale}, shifts: [1]float32{shift}}
	for p := range n.table {
		n.table[p] = float32(float32(p)*scale) + shift
	}
	return n, nil
}

// applyGo is the meaning of apply: dst[i] = table[pixels[i]].
func (n *normalizer) applyGo(dst []float32, pixels []uint8) {
	dst = dst[:len(pixels)]
	for i, p := range pixels {
		dst[i] = n.table[p]
	}
}
