package data

import (
	"fmt"
	"math"
)

// normalizer turns pixels into the numbers a network sees: (p/255 - mean)/std, computed as scale·p
// + shift with the product rounded before the sum. So the tables and the vector code give the same
// bits. Channels take turns from pixel to pixel.
type normalizer struct {
	channels []channel // one, or three
	pattern  pattern   // of three channels

	scales, shifts []float32 // of the channels, for a device.Batch
}

// channel is the normalisation of one channel.
type channel struct {
	scale, shift float32
	table        [256]float32
}

// patternLength is the shortest run of pixels after which both vectors of 16 and channels of 3
// begin anew.
const patternLength = 48

// pattern is the scales and shifts of that many pixels.
type pattern struct{ scale, shift [patternLength]float32 }

// newNormalizer makes the normalizer of one or three channels.
func newNormalizer(mean, std []float32) (*normalizer, error) {
	if len(mean) != len(std) || len(mean) != 1 && len(mean) != 3 {
		return nil, fmt.Errorf("normalisation with %d means and %d stds, want one of each, or three", len(mean),
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
	// The bounds of a usable scale also catch a NaN.
	if !(s > 0 && c.scale > 1e-30 && c.scale < 1e30 && math.Abs(float64(c.shift)) < 1e30) {
		return fmt.Errorf("normalisation with mean %v and std %v, want a finite mean and a positive std", mean, std)
	}
	for p := range c.table {
		c.table[p] = float32(float32(p)*c.scale) + c.shift
	}
	return nil
}

// apply writes the numbers of pixels to dst. It also asks the caches for the pixels ahead, where
// that is not empty: those that are wanted soon, and lie anywhere in the set.
func (n *normalizer) apply(dst []float32, pixels, ahead []uint8) {
	dst = dst[:len(pixels)]
	if len(n.channels) == 1 {
		n.channels[0].apply(dst, pixels, ahead)
		return
	}
	whole := n.applyPattern(dst, pixels)
	n.applyGo(dst[whole:], pixels[whole:])
}

// applyGo is the meaning of apply: dst[i] = table[pixels[i]], of the channel i mod 3 where there
// are three.
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

// applyGo is the meaning of apply: dst[i] = table[pixels[i]].
func (c *channel) applyGo(dst []float32, pixels []uint8) {
	dst = dst[:len(pixels)]
	for i, p := range pixels {
		dst[i] = c.table[p]
	}
}
