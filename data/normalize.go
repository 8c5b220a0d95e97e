package data

import (
	"fmt"
	"math"
)

// normalizer converts pixels to network inputs: (p/255 - mean)/std, computed as scale·p + shift
// with the product rounded before the sum, so that table lookup and vector code give the same bits.
// Channels are interleaved.
type normalizer struct {
	channels []channel // one, or three
	pattern  pattern   // pattern of three channels

	scales, shifts []float32 // one number for each channel, passed in device.Batch
}

type channel struct {
	scale, shift float32
	table        [256]float32
}

//go:generate go run -C ../tools/asm ./neongen ../..

// patternLength is the least common multiple of the vector width 16 and 3 channels.
const patternLength = 48

// pattern holds the scales and shifts of patternLength pixels.
type pattern struct{ scale, shift [patternLength]float32 }

func newNormalizer(mean, std []float32) (*normalizer, error) {
	if len(mean) != len(std) || len(mean) != 1 && len(mean) != 3 {
		return nil, fmt.Errorf("normalization with %d means and %d stds, want one of each, or three", len(mean),
			len(std))
	}
	n := &normalizer{channels: make([]channel, len(mean))}
	for i := range mean {
		c := &n.channels[i]
		if err := c.set(mean[i], std[i]); err != nil {
			return nil, err
		}
		n.scales, n.shifts = append(n.scales, c.scale), append(n.shifts, c.shift)
	}
	for i := range patternLength {
		c := &n.channels[i%len(mean)]
		n.pattern.scale[i], n.pattern.shift[i] = c.scale, c.shift
	}
	return n, nil
}

func (c *channel) set(mean, std float32) error {
	m, s := float64(mean), float64(std)
	c.scale, c.shift = float32(1/(255*s)), float32(-m/s)
	// The bounds of a valid scale also exclude NaN.
	if !(s > 0 && c.scale > 1e-30 && c.scale < 1e30 && math.Abs(float64(c.shift)) < 1e30) {
		return fmt.Errorf("normalization with mean %v and std %v, want a finite mean and a positive std", mean, std)
	}
	for p := range c.table {
		c.table[p] = float32(float32(p)*c.scale) + c.shift
	}
	return nil
}

// apply writes the values of pixels to dst. It also prefetches the pixels ahead, which may be empty
// or anywhere in the set.
func (n *normalizer) apply(dst []float32, pixels, ahead []uint8) {
	dst = dst[:len(pixels)]
	if len(n.channels) == 1 {
		n.channels[0].apply(dst, pixels, ahead)
		return
	}
	whole := n.applyPattern(dst, pixels)
	n.applyGo(dst[whole:], pixels[whole:])
}

// applyGo is the portable version of apply: dst[i] = table[pixels[i]], with the table of channel i
// mod 3 for three channels.
func (n *normalizer) applyGo(dst []float32, pixels []uint8) {
	if len(n.channels) == 1 {
		n.channels[0].applyGo(dst, pixels)
		return
	}
	r, g, b := &n.channels[0].table, &n.channels[1].table, &n.channels[2].table
	for len(pixels) >= 3 {
		dst[0], dst[1], dst[2] = r[pixels[0]], g[pixels[1]], b[pixels[2]]
		dst, pixels = dst[3:], pixels[3:]
	}
	for i, p := range pixels {
		dst[i] = n.channels[i].table[p]
	}
}

// applyGo is the portable version of apply: dst[i] = table[pixels[i]].
func (c *channel) applyGo(dst []float32, pixels []uint8) {
	dst = dst[:len(pixels)]
	for i, p := range pixels {
		dst[i] = c.table[p]
	}
}
