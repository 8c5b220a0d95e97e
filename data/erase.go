package data

import (
	"fmt"
	"math"

	"fspda/internal/rng"
)

// The distribution of an erased box by Zhong et al., Random Erasing Data Augmentation (2020), with
// torchvision's parameters.
const (
	eraseMinArea  = 0.02 // fraction of the image's area
	eraseMaxArea  = 0.33
	eraseMinRatio = 0.3 // height/width, uniform in its logarithm
	eraseMaxRatio = 3.3
	eraseTries    = 10
)

// randomErase sets the probability with which a training example loses a box.
func (s *Set) randomErase(p float64) error {
	switch {
	case !(p >= 0 && p <= 1):
		return fmt.Errorf("data: set %s: random erasing with probability %v, want 0 to 1", s.Name, p)
	case p > 0 && len(s.Shape) < 2:
		return fmt.Errorf("data: set %s: random erasing of examples of shape %v, want pictures", s.Name, s.Shape)
	}
	s.Train.erase = p
	return nil
}

// eraseRandomly sets a random box of the normalized values of an example to 0, the mean colour,
// with probability p. It draws nothing if p is 0.
func eraseRandomly(values []float32, shape [3]int, p float64, s *rng.Stream) {
	if p == 0 || s.Float64() >= p {
		return
	}
	columns, deep := shape[1], shape[2]
	top, left, h, w := eraseBox(s.Float64, shape[0], columns)
	for y := top; y < top+h; y++ {
		clear(values[(y*columns+left)*deep:][:w*deep])
	}
}

// eraseBox samples position and size of an erased box from uniform numbers. The box is empty if ten
// samples do not fit into the example.
func eraseBox(uniform func() float64, rows, columns int) (top, left, h, w int) {
	area := float64(rows) * float64(columns)
	for range eraseTries {
		part := area * (eraseMinArea + float64((eraseMaxArea-eraseMinArea)*uniform()))
		// Rounded because the last bits of an exponential differ between processors.
		ratio := float64(float32(math.Exp(math.Log(eraseMinRatio) +
			float64((math.Log(eraseMaxRatio)-math.Log(eraseMinRatio))*uniform()))))
		h, w = int(math.RoundToEven(math.Sqrt(part*ratio))), int(math.RoundToEven(math.Sqrt(part/ratio)))
		if h < rows && w < columns {
			top = int(uniform() * float64(rows-h+1))
			return top, int(uniform() * float64(columns-w+1)), h, w
		}
	}
	return 0, 0, 0, 0
}
