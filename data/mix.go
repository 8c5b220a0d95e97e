package data

import (
	"fmt"
	"math"

	"fspda/device"
	"fspda/internal/rng"
)

// MostMix is the largest parameter of mixup and cutmix, and LeastMix the smallest above 0. Beyond
// them the weights are drawn slowly.
const (
	LeastMix = 0.001
	MostMix  = 4
)

// mixPosition keys the random numbers of a batch as a whole.
const mixPosition = 1<<32 - 1

// mixing says how training mixes the pictures of a batch in pairs: by mixup of Zhang et al. (2018),
// cutmix of Yun et al. (2019), or one of the two at random. A parameter of 0 leaves it out.
type mixing struct{ mixup, cutmix float64 }

// on reports whether batches are mixed.
func (m mixing) on() bool { return m.mixup > 0 || m.cutmix > 0 }

func (s *Set) setMixing(m mixing) error {
	for _, a := range []float64{m.mixup, m.cutmix} {
		if a != 0 && !(a >= LeastMix && a <= MostMix) {
			return fmt.Errorf("data: set %s: mixup or cutmix with parameter %v, want %v to %v", s.Name, a, LeastMix,
				MostMix)
		}
	}
	if m.on() && len(s.Shape) < 2 {
		return fmt.Errorf("data: set %s: mixup or cutmix of examples of shape %v, want pictures", s.Name, s.Shape)
	}
	s.Train.mixing = m
	return nil
}

// run mixes each example of a batch of normalized values with the one before it, the first with the
// last. It draws nothing if batches are not mixed.
func (m mixing) run(b *device.Batch, shape [3]int, buf *imageScratch, s *rng.Stream) {
	if !m.on() || len(b.Y) == 0 {
		return
	}
	alpha, cut := m.mixup, m.mixup == 0
	if m.mixup > 0 && m.cutmix > 0 {
		cut = s.IntN(2) == 1
	}
	if cut {
		alpha = m.cutmix
	}
	// Rounded because the last bits of a power differ between processors.
	weight := float32(beta(s.Float64, alpha))
	box := pixelBox{0, 0, shape[0], shape[1]}
	if cut {
		x, y := s.IntN(shape[1]), s.IntN(shape[0])
		box, weight = cutBox(weight, shape[0], shape[1], y, x)
	}
	b.Mix = make([]device.Mix, len(b.Y))
	for i := range b.Mix {
		b.Mix[i] = device.Mix{Partner: b.Y[(i+len(b.Y)-1)%len(b.Y)], Weight: weight}
	}
	m.pairs(b.X, len(b.Y), buf, func(own, partner []float32) {
		if !cut {
			for i, v := range own {
				own[i] = float32(weight*v) + float32((1-weight)*partner[i])
			}
			return
		}
		columns, deep := shape[1], shape[2]
		for y := box.top; y < box.bottom; y++ {
			from, to := (y*columns+box.left)*deep, (y*columns+box.right)*deep
			copy(own[from:to], partner[from:to])
		}
	})
}

// pairs calls mix with each of n examples, from the last to the first, and the one before it, which
// is not mixed yet.
func (m mixing) pairs(x []float32, n int, buf *imageScratch, mix func(own, partner []float32)) {
	f := len(x) / n
	buf.last = append(buf.last[:0], x[(n-1)*f:]...)
	for i := n - 1; i > 0; i-- {
		mix(x[i*f:(i+1)*f], x[(i-1)*f:i*f])
	}
	mix(x[:f], buf.last)
}

// beta returns a number with the distribution Beta(a, a), by the method of Jöhnk.
func beta(uniform func() float64, a float64) float64 {
	for {
		x, y := math.Pow(uniform(), 1/a), math.Pow(uniform(), 1/a)
		if sum := x + y; sum > 0 && sum <= 1 {
			return x / sum
		}
	}
}

// pixelBox is a part of a picture: rows from top to below bottom, columns from left to below right.
type pixelBox struct{ top, left, bottom, right int }

// cutBox returns the box around a pixel that covers 1-weight of a picture, as far as it is inside,
// and the share of the picture outside of it.
func cutBox(weight float32, rows, columns, y, x int) (b pixelBox, outside float32) {
	half := math.Sqrt(1-float64(weight)) / 2
	h, w := int(half*float64(rows)), int(half*float64(columns))
	b = pixelBox{max(0, y-h), max(0, x-w), min(rows, y+h), min(columns, x+w)}
	area := float64((b.bottom - b.top) * (b.right - b.left))
	return b, float32(1 - area/(float64(rows)*float64(columns)))
}
