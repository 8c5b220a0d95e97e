package data

import (
	"math"

	"fspda/internal/rng"
)

// The distribution of a random resized crop by Szegedy et al., Going Deeper with Convolutions
// (2015), with torchvision's parameters.
const (
	cropMinArea  = 0.08    // fraction of the image's area, uniform up to 1
	cropMinRatio = 3. / 4. // width/height, uniform in its logarithm
	cropWide     = 4. / 3.
	cropTries    = 10
)

// randomCrop selects the crop of a training image of w×h pixels: a random box, mirrored every
// second time, scaled to side×side pixels.
func randomCrop(s *rng.Stream, w, h, side int) (across, down window) {
	x, y, bw, bh := randomBox(s, w, h)
	across = window{from: x, size: bw, out: side, mirror: s.IntN(2) == 1}
	return across, window{from: y, size: bh, out: side}
}

// randomBox samples size and position of a box. After ten samples that do not fit into the image it
// returns the largest centred box with a valid aspect ratio.
func randomBox(s *rng.Stream, w, h int) (x, y, bw, bh int) {
	area := float64(w) * float64(h)
	for range cropTries {
		part := area * (cropMinArea + float64((1-cropMinArea)*s.Float64()))
		// Rounded because the last bits of an exponential differ between processors.
		ratio := float64(float32(math.Exp(math.Log(cropMinRatio) +
			float64((math.Log(cropWide)-math.Log(cropMinRatio))*s.Float64()))))
		bw, bh = int(math.RoundToEven(math.Sqrt(part*ratio))), int(math.RoundToEven(math.Sqrt(part/ratio)))
		if bw > 0 && bw <= w && bh > 0 && bh <= h {
			y = s.IntN(h - bh + 1)
			return s.IntN(w - bw + 1), y, bw, bh
		}
	}
	bw, bh = w, h
	switch ratio := float64(w) / float64(h); {
	case ratio < cropMinRatio:
		bh = min(h, int(math.RoundToEven(float64(w)/cropMinRatio)))
	case ratio > cropWide:
		bw = min(w, int(math.RoundToEven(float64(h)*cropWide)))
	}
	return (w - bw) / 2, (h - bh) / 2, bw, bh
}

// centreCrop selects the crop of an evaluation image of w×h pixels: its shorter side is scaled to
// short pixels, and the central side×side pixels are taken. side <= short.
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
