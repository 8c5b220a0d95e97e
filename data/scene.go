package data

import (
	"image"
	"math"

	"fspda/internal/rng"
)

// scene describes a synthetic image. Lengths are in pixels, colours from 0 to 255. Products are
// rounded separately, so that processors with fused multiply-add draw the same.
type scene struct {
	w, h    int
	figures []figure
	shape   func(u, v float64) bool
	texture func(u, v float64) bool
	ink     [2]colour // colours of the texture
	ground  [2]colour // colours at the upper left and the lower right
	grain   rng.Stream
}

type colour [3]float64

// figure is one shape: position, radius, and orientation as a unit vector.
type figure struct{ x, y, radius, cos, sin float64 }

// The shapes, within the unit circle.
var shapes = []func(u, v float64) bool{
	func(u, v float64) bool { return float64(u*u)+float64(v*v) < 1 },        // disc
	func(u, v float64) bool { return max(math.Abs(u), math.Abs(v)) < 0.75 }, // square
	// triangle
	func(u, v float64) bool { return v > -0.6 && v+float64(1.8*math.Abs(u)) < 1 },
	// ring
	func(u, v float64) bool { r := float64(u*u) + float64(v*v); return r > 0.35 && r < 1 },
	// cross
	func(u, v float64) bool { a, b := math.Abs(u), math.Abs(v); return min(a, b) < 0.25 && max(a, b) < 0.95 },
}

// The textures: which of two inks a position has.
var textures = []func(u, v float64) bool{
	func(u, _ float64) bool { return true },
	func(u, _ float64) bool { return odd(3 * u) },               // stripes
	func(u, v float64) bool { return odd(2.5*u) != odd(2.5*v) }, // checks
	func(u, v float64) bool { return dot(4*u) && dot(4*v) },     // dots
}

// odd reports whether the integer part of v is odd.
func odd(v float64) bool { return int(math.Floor(v))&1 != 0 }

// dot reports whether v is near the middle between two integers.
func dot(v float64) bool { return math.Abs(float64(v)-math.Floor(v)-0.5) < 0.3 }

const (
	inks         = 10 // colours that distinguish classes
	sceneMinSide = 72 // shortest of the shorter sides of images, in pixels
	sceneSides   = 89 // number of lengths of the shorter side, one pixel apart
)

// newScene samples the scene of an image of a class.
func newScene(s *rng.Stream, class, classes int) *scene {
	kind, rest := class%(len(shapes)*len(textures)), class/(len(shapes)*len(textures))
	c := &scene{shape: shapes[kind%len(shapes)], texture: textures[kind/len(shapes)]}
	c.w = sceneMinSide + s.IntN(sceneSides)
	c.h = c.w
	if longer := c.w + c.w*s.IntN(51)/100; s.IntN(2) == 0 {
		c.w = longer
	} else {
		c.h = longer
	}
	hue := s.IntN(inks)
	if classes > len(shapes)*len(textures) {
		hue = rest % inks
	}
	c.colours(s, hue)
	c.addFigures(s, 1+rest/inks)
	c.grain = s.Sub(0)
	return c
}

// colours selects a bright and a dark ink of a hue on a background of another.
func (c *scene) colours(s *rng.Stream, hue int) {
	bright := hueOf(float64(hue)/inks + float64(0.06*(s.Float64()-0.5)))
	ground := hueOf(float64(hue)/inks + 0.25 + float64(0.5*s.Float64()))
	from, to := 60+float64(80*s.Float64()), 60+float64(80*s.Float64())
	for k := range 3 {
		c.ink[1][k] = 110 + float64(145*bright[k])
		c.ink[0][k] = 10 + float64(70*bright[k])
		c.ground[0][k] = from + float64(40*ground[k])
		c.ground[1][k] = to + float64(40*ground[k])
	}
}

// hueOf returns the pure colour at a position on the colour circle, which has length 1.
func hueOf(at float64) colour {
	var c colour
	for k := range c {
		d := at - float64(k)/3
		d -= math.Floor(d)
		c[k] = min(1, max(0, math.Abs(float64(6*d)-3)-1)) // 1 around d = 0
	}
	return c
}

// addFigures adds n figures to the scene, in a grid of cells.
func (c *scene) addFigures(s *rng.Stream, n int) {
	side := 1
	for side*side < n {
		side++
	}
	cw, ch := float64(c.w)/float64(side), float64(c.h)/float64(side)
	for i := range n {
		radius := float64(min(cw, ch) * (0.3 + float64(0.18*s.Float64())))
		f := figure{radius: radius, x: float64(i%side) * cw, y: float64(i/side) * ch}
		f.x += radius + float64((cw-2*radius)*s.Float64())
		f.y += radius + float64((ch-2*radius)*s.Float64())
		f.cos, f.sin = direction(s)
		c.figures = append(c.figures, f)
	}
}

// direction samples a unit vector.
func direction(s *rng.Stream) (x, y float64) {
	for {
		x, y = 2*s.Float64()-1, 2*s.Float64()-1
		if r := float64(x*x) + float64(y*y); r > 0.01 && r < 1 {
			return x / math.Sqrt(r), y / math.Sqrt(r)
		}
	}
}

func (c *scene) at(x, y int) [3]uint8 {
	px, py := float64(x)+0.5, float64(y)+0.5
	var v colour
	along := (px/float64(c.w) + py/float64(c.h)) / 2
	for k := range v {
		v[k] = c.ground[0][k] + float64((c.ground[1][k]-c.ground[0][k])*along)
	}
	for _, f := range c.figures {
		dx, dy := (px-f.x)/f.radius, (py-f.y)/f.radius
		u, w := float64(dx*f.cos)+float64(dy*f.sin), float64(dy*f.cos)-float64(dx*f.sin)
		if c.shape(u, w) {
			v = c.ink[0]
			if c.texture(u, w) {
				v = c.ink[1]
			}
		}
	}
	noise := float64(c.grain.IntN(25) - 12)
	var out [3]uint8
	for k := range out {
		out[k] = uint8(max(0, min(255, v[k]+noise)))
	}
	return out
}

func (c *scene) coloured() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, c.w, c.h))
	for i := range c.w * c.h {
		p := c.at(i%c.w, i/c.w)
		copy(m.Pix[4*i:], []uint8{p[0], p[1], p[2], 255})
	}
	return m
}

func (c *scene) grey() *image.Gray {
	m := image.NewGray(image.Rect(0, 0, c.w, c.h))
	for i := range c.w * c.h {
		p := c.at(i%c.w, i/c.w)
		m.Pix[i] = uint8((int(p[0]) + int(p[1]) + int(p[2])) / 3)
	}
	return m
}
