package conv

import (
	"fspda/cpu/kernel"
)

// maxPixels is how many pixels of the output a chunk of the weight gradient takes. It is part of
// the definition.
const maxPixels = 392

// pixels is a part of the pixels of the output: of the images from n on, the rows from i on, and of
// these the columns from j on.
type pixels struct {
	n, images int
	i, rows   int
	j, cols   int
}

func (x pixels) count() int { return x.images * x.rows * x.cols }

// pixelParts returns into how many parts images, the rows of an image, and the columns of a row are
// divided. If columns are divided, every row of every image is a part; if rows are, every image.
func (v *convolution) pixelParts() (images, rows, cols int) {
	over := func(n, per int) int { return (n + per - 1) / per }
	switch {
	case v.p*v.q <= maxPixels:
		return over(v.n, maxPixels/(v.p*v.q)), 1, 1
	case v.q <= maxPixels:
		return v.n, over(v.p, maxPixels/v.q), 1
	default:
		return v.n, v.p, over(v.q, maxPixels)
	}
}

func (v *convolution) pixelPart(m int) pixels {
	images, rows, cols := v.pixelParts()
	var x pixels
	x.n, x.images = kernel.Split(m/(rows*cols), images, v.n)
	x.i, x.rows = kernel.Split(m/cols%rows, rows, v.p)
	x.j, x.cols = kernel.Split(m%cols, cols, v.q)
	return x
}
