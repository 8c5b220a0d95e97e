package data

import (
	"math"

	"fspda/internal/rng"
)

// The distribution of a random resized crop: that of Szegedy et al., Going Deeper with Convolutions
// (2015), with the numbers that torchvision has settled on.
const (
	cropLeast  = 0.08    // share of the picture's area, uniform up to 1
	cropNarrow = 3. / 4. // width over height, uniform in its logarithm
	cropWide   = 4. / 3.
	cropTries  = 10
)

// randomCrop is where training looks at a picture of w×h pixels: a random box, mirrored every other
// time, becomes side×side pixels.
func randomCrop(s *rng.Stream, w, h, side int) (across, down window) {
	x, y, bw, bh := randomBox(s, w, h)
	across = window{from: x, size: bw, out: side, mirror: s.IntN(2) == 1}
	return across, window{from: y, size: bh, out: side}
}

// randomBox draws size and place of a box. Where ten draws do not fit into the picture it is the
// largest one in the middle whose proportions are allowed.
func randomBox(s *rng.Stream, w, h int) (x, y, bw, bh int) {
	area := float64(w) * float64(h)
	for range cropTries {
		part := area * (cropLeast + float64((1-cropLeast)*s.Float64()))
		// Rounded, for the last bits of an exponential differ between processors.
		ratio := float64(float32(math.Exp(math.Log(cropNarrow) +
			float64((math.Log(cropWide)-math.Log(cropNarrow))*s.Float64()))))
		bw, bh = int(math.RoundToEven(math.Sqrt(part*ratio))), int(math.RoundToEven(math.Sqrt(part/ratio)))
		if bw > 0 && bw <= w && bh > 0 && bh <= h {
			y = s.IntN(h - bh + 1)
			return s.IntN(w - bw + 1), y, bw, bh
		}
	}
	bw, bh = w, h
	switch ratio := float64(w) / float64(h); {
	case ratio < cropNarrow:
		bh = min(h, int(math.RoundToEven(float64(w)/cropNarrow)))
	case ratio > cropWide:
		bw = min(w, int(math.RoundToEven(float64(h)*cropWide)))
	}
	return (w - bw) / 2, (h - bh) / 2, bw, bh
}

// centreCrop is where evaluation looks at a picture of w×h pixels: it is scaled until its shorter
// side has short pixels, and the side×side pixels in the middle are taken. side is at most short.
func centreCrop(w, h, short, side int) (across, down window) {
	ow, oh := short, short
	if w > h {
		ow = short * w / h
	} else {
		oh = short * h / w
	}
	middle := func(n int) int { return int(math.RoundToEven(float64(n-side) / 2)) }
	return window{size: w, out: ow, first: middle(ow)}, window{size: h, out: oh, first: middle(oh)}
}
