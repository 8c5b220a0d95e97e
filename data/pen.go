package data

import (
	"math"

	"fspda/internal/rng"
)

// style holds the random parameters of one drawn example: writer, sheet and stroke.
type style struct {
	height, width float64 // size of the glyph's box, in pixels
	slant         float64 // shift to the right per pixel of height
	cos, sin      float64 // cosine and sine of the rotation
	centre        point
	wobble        float64 // displacement of each point of the skeleton, in parts of the box
	bend          [3]wave // smooth distortion of the image
	// half the thickness of the line in pixels, and its variation along the line
	radius, swell  float64
	soft           float64 // half the width of the line's edge, in pixels
	ink, grain     float64 // brightness of the line, and the noise that reduces it
	specks, gaps   int
	variant, phase float64
}

// wave displaces positions by amount·swing(position·direction + phase).
type wave struct {
	direction, amount point
	phase             float64
}

// pen draws digits. It holds the buffers of one drawing, so each goroutine needs its own.
//
// All products are rounded separately (times), and only operations that IEEE 754 rounds correctly
// are used, without sines or logarithms: every machine draws the same bytes. (The values of a
// Stream are multiplied by a power of two, which is exact, fused or not.)
type pen struct {
	cover [pixels]float64 // brightness from 0 to 1
	line  []point
	knots []point
}

// times is a·b, rounded. The conversion prevents a fused multiply-add, which some processors would
// use.
func times(a, b float64) float64 { return float64(a * b) }

// between returns a number uniform in [low,high).
func between(s *rng.Stream, low, high float64) float64 { return low + times(s.Float64(), high-low) }

// around returns a number from a bell-shaped distribution in centre±reach: the mean of three
// uniform numbers.
func around(s *rng.Stream, centre, reach float64) float64 {
	u := s.Float64() + s.Float64() + s.Float64() - 1.5
	return centre + times(u, reach/1.5)
}

// swing is a smooth wave of period 1 between -1 and 1, composed of parabolas, close to a sine.
func swing(x float64) float64 {
	x -= math.Floor(x)
	if x < 0.5 {
		return times(16*x, 0.5-x)
	}
	return times(-16*(x-0.5), 1-x)
}

func newStyle(s *rng.Stream) style {
	var y style
	y.variant = s.Float64()
	y.height = around(s, 18, 5)
	y.width = times(y.height, around(s, 1.15, 0.5))
	y.slant = around(s, 0.12, 0.6)
	// Rational rotation by twice the angle whose tangent is t.
	t := around(s, 0, 0.24)
	norm := 1 + times(t, t)
	y.cos, y.sin = (1-times(t, t))/norm, 2*t/norm
	y.centre = point{around(s, side/2, 4), around(s, side/2, 4)}
	y.wobble = between(s, 0.02, 0.11)
	for i := range y.bend {
		y.bend[i] = wave{direction: point{around(s, 0, 0.06), around(s, 0, 0.06)},
			amount: point{around(s, 0, 1.8), around(s, 0, 1.8)}, phase: s.Float64()}
	}
	y.radius = around(s, 1.28, 0.8)
	y.swell, y.phase = between(s, 0, 0.3), s.Float64()
	y.soft = between(s, 0.5, 0.8)
	y.ink, y.grain = between(s, 0.82, 1.15), between(s, 0, 0.25)
	if s.Float64() < 0.12 {
		y.specks = 1 + s.IntN(2)
	}
	if s.Float64() < 0.12 {
		y.gaps = 1
	}
	return y
}

// draw draws one example of a digit to dst, pixels bytes.
func (p *pen) draw(dst []uint8, digit int, s rng.Stream) {
	clear(p.cover[:])
	y := newStyle(&s)
	ways := glyphs[digit]
	g := ways[int(times(y.variant, float64(len(ways))))]
	for i, k := range g.strokes {
		p.trace(k, g, &y, s.Sub(uint64(i)))
		p.ink(&y)
	}
	for range y.specks {
		at := point{between(&s, 1, side-1), between(&s, 1, side-1)}
		p.segment(at, at, between(&s, 0.3, 1), y.soft)
	}
	for range y.gaps {
		p.erase(between(&s, 6, side-6), between(&s, 6, side-6), between(&s, 1, 2.2))
	}
	p.develop(dst, &y, &s)
}

// project maps a point of the glyph's box to the image.
func (y *style) project(q point, g glyph) point {
	u := times(times(q.x-0.5, g.width), y.width)
	v := times(q.y-0.5, y.height)
	u -= times(y.slant, v)
	x := times(y.cos, u) - times(y.sin, v) + y.centre.x
	z := times(y.sin, u) + times(y.cos, v) + y.centre.y
	r := point{x, z}
	for _, w := range y.bend {
		a := swing(times(x, w.direction.x) + times(z, w.direction.y) + w.phase)
		r.x += times(a, w.amount.x)
		r.y += times(a, w.amount.y)
	}
	return r
}

// trace computes the line of a stroke on the image: a Catmull-Rom curve through its randomly
// displaced points.
func (p *pen) trace(k stroke, g glyph, y *style, s rng.Stream) {
	const pieces = 5
	p.knots, p.line = p.knots[:0], p.line[:0]
	for _, q := range k {
		q.x += around(&s, 0, y.wobble)
		q.y += around(&s, 0, y.wobble)
		p.knots = append(p.knots, y.project(q, g))
	}
	n := len(p.knots)
	for i := range n - 1 {
		a, b, c, d := p.knots[max(i-1, 0)], p.knots[i], p.knots[i+1], p.knots[min(i+2, n-1)]
		for j := range pieces {
			t := float64(j) / pieces
			p.line = append(p.line, point{catmullRom(a.x, b.x, c.x, d.x, t), catmullRom(a.y, b.y, c.y, d.y, t)})
		}
	}
	p.line = append(p.line, p.knots[n-1])
}

// catmullRom is the cubic from b to c for t from 0 to 1, with slopes (c-a)/2 and (d-b)/2.
func catmullRom(a, b, c, d, t float64) float64 {
	k3 := times(3, b-c) + d - a
	k2 := times(2, a) - times(5, b) + times(4, c) - d
	k1 := c - a
	return b + times(0.5*t, k1+times(t, k2+times(t, k3)))
}

// ink draws the line with the pen's thickness.
func (p *pen) ink(y *style) {
	for i := range len(p.line) - 1 {
		r := times(y.radius, 1+times(y.swell, swing(y.phase+times(float64(i), 0.04))))
		p.segment(p.line[i], p.line[i+1], r, y.soft)
	}
}

// segment brightens the pixels near the line from a to b: fully up to r-soft, fading out at r+soft.
func (p *pen) segment(a, b point, r, soft float64) {
	reach := r + soft
	x0, x1 := bounds(min(a.x, b.x)-reach, max(a.x, b.x)+reach)
	y0, y1 := bounds(min(a.y, b.y)-reach, max(a.y, b.y)+reach)
	dx, dy := b.x-a.x, b.y-a.y
	inv := 0.0
	if q := times(dx, dx) + times(dy, dy); q > 1e-12 {
		inv = 1 / q
	}
	fade, limit := 0.5/soft, times(reach, reach)
	for row := y0; row < y1; row++ {
		v := float64(row) + 0.5 - a.y
		cover := p.cover[row*side : (row+1)*side]
		for col := x0; col < x1; col++ {
			u := float64(col) + 0.5 - a.x
			t := min(max(times(times(u, dx)+times(v, dy), inv), 0), 1)
			eu, ev := u-times(t, dx), v-times(t, dy)
			if q := times(eu, eu) + times(ev, ev); q < limit {
				if c := min(times(reach-math.Sqrt(q), fade), 1); c > cover[col] {
					cover[col] = c
				}
			}
		}
	}
}

// bounds returns the rows or columns whose centres may be within low to high.
func bounds(low, high float64) (from, to int) {
	return int(min(max(low, 0), side)), int(min(max(high+1, 0), side))
}

// erase removes the ink in a square of side 2·half around x, y.
func (p *pen) erase(x, y, half float64) {
	x0, x1 := bounds(x-half, x+half-1)
	y0, y1 := bounds(y-half, y+half-1)
	for row := y0; row < y1; row++ {
		for col := x0; col < x1; col++ {
			p.cover[row*side+col] = times(p.cover[row*side+col], 0.15)
		}
	}
}

// develop converts brightness to bytes. Grain affects only ink: the background stays black, as in
// MNIST.
func (p *pen) develop(dst []uint8, y *style, s *rng.Stream) {
	for i, c := range p.cover[:] {
		if c == 0 {
			dst[i] = 0
			continue
		}
		c = times(times(c, y.ink), 1-times(y.grain, s.Float64()))
		dst[i] = uint8(times(255, min(c, 1)) + 0.5)
	}
}
