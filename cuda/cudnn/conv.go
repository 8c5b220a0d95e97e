package cudnn

import (
	"errors"
	"fmt"

	"fspda/cuda/driver"
)

// Shape is a convolution of n images of h×w pixels and c channels with k filters of r×s.
type Shape struct{ N, H, W, C, K, R, S, Stride, Pad int }

// P and Q are the height and the width of the output.
func (s Shape) P() int { return (s.H+2*s.Pad-s.R)/s.Stride + 1 }
func (s Shape) Q() int { return (s.W+2*s.Pad-s.S)/s.Stride + 1 }

func (s Shape) String() string {
	return fmt.Sprintf("%d images of %d×%d×%d with %d filters of %d×%d, stride %d, padding %d", s.N, s.H, s.W, s.C, s.K,
		s.R, s.S, s.Stride, s.Pad)
}

// Direction is which of the three products a call computes.
type Direction int

const (
	Forward Direction = iota
	GradX
	GradW
)

// Conv is a convolution, or one of its gradients, with an algorithm. It belongs to the thread of
// its Handle.
type Conv struct {
	Workspace int // bytes that it works in

	h         *Handle
	shape     Shape
	direction Direction
	of        Type
	algo      int32
	planned   *executionPlan                     // nil: algo
	proven    bool                               // the plan has run
	refused   bool                               // the plan did not run even once: algo instead
	how       Choosing                           // what chooses that
	product   func(x, w, y driver.Pointer) error // not nil: this
	math      Math
	x, y      Tensor
	w         Filter
	conv      Descriptor
}

// NewConv describes a convolution and chooses its algorithm.
func (h *Handle) NewConv(s Shape, d Direction, of Type, m Math, how Choosing) (*Conv, error) {
	c := &Conv{h: h, shape: s, direction: d, of: of, how: how, math: m}
	if err := c.describe(of, m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.choose(how, m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// describe tells the library of the shapes. Filters have their outputs first, and their channels
// last.
func (c *Conv) describe(of Type, m Math) error {
	a, s := c.h.api, c.shape
	i := func(n int) int32 { return int32(n) }
	for _, r := range []Status{
		a.CreateTensor(&c.x), a.CreateTensor(&c.y), a.CreateFilter(&c.w), a.CreateConv(&c.conv),
		a.SetTensor(c.x, channelsLast, of, i(s.N), i(s.C), i(s.H), i(s.W)),
		a.SetTensor(c.y, channelsLast, of, i(s.N), i(s.K), i(s.P()), i(s.Q())),
		a.SetFilter(c.w, of, channelsLast, i(s.K), i(s.C), i(s.R), i(s.S)),
		a.SetConv(c.conv, i(s.Pad), i(s.Pad), i(s.Stride), i(s.Stride), 1, 1, crossCorrelation, Float32),
		a.SetMath(c.conv, m),
	} {
		if err := a.check(r, "describing a convolution of %v", s); err != nil {
			return err
		}
	}
	return nil
}

// Run sends the convolution to the stream: y = x ⋆ w, or by the direction dx from dy and w, or dw
// from x and dy. dx and dw take the places of x and w.
func (c *Conv) Run(x, w, y, room driver.Pointer) error {
	if c.product != nil {
		return c.product(x, w, y)
	}
	if c.planned == nil || c.refused {
		return c.runAlgorithm(x, w, y, room)
	}
	err := c.planned.run(addresses{x, w, y, room})
	if err == nil || c.proven {
		c.proven = true
		return err
	}
	if c.advisedAlgorithm(c.how, c.math) != nil {
		return err
	}
	c.refused = true
	return c.runAlgorithm(x, w, y, room)
}

func (c *Conv) runAlgorithm(x, w, y, room driver.Pointer) error {
	a, h := c.h.api, c.h
	var r Status
	switch c.direction {
	case Forward:
		r = a.Forward(h.h, h.one, c.x, x, c.w, w, c.conv, c.algo, room, uintptr(c.Workspace), h.zero, c.y, y)
	case GradX:
		r = a.BackwardData(h.h, h.one, c.w, w, c.y, y, c.conv, c.algo, room, uintptr(c.Workspace), h.zero, c.x, x)
	case GradW:
		r = a.BackwardFilter(h.h, h.one, c.x, x, c.y, y, c.conv, c.algo, room, uintptr(c.Workspace), h.zero, c.w, w)
	}
	return a.check(r, "a convolution of %v", c.shape)
}

// Route names what computes it, for people: an algorithm, or an engine of the graph API with its
// settings.
func (c *Conv) Route() string {
	if c.product != nil {
		return "product of matrices"
	}
	if c.planned != nil && !c.refused {
		return "graph, " + c.planned.engine.String()
	}
	return fmt.Sprintf("algorithm %d", c.algo)
}

// use makes a plan the way of the convolution.
func (c *Conv) use(p *executionPlan) { c.planned, c.Workspace = p, p.memory }

// Close gives back what the library keeps of the convolution.
func (c *Conv) Close() error {
	a := c.h.api
	err := c.planned.close()
	for _, r := range []Status{a.DestroyTensor(c.x), a.DestroyTensor(c.y), a.DestroyFilter(c.w),
		a.DestroyConv(c.conv)} {
		err = errors.Join(err, a.check(r, "closing a convolution"))
	}
	return err
}
