package cudnn

import (
	"errors"
	"fmt"

	"fspda/cuda/driver"
)

// Shape describes a convolution of N images of H×W pixels and C channels with K filters of R×S.
type Shape struct{ N, H, W, C, K, R, S, Stride, Pad int }

// P and Q return the height and width of the output.
func (s Shape) P() int { return (s.H+2*s.Pad-s.R)/s.Stride + 1 }
func (s Shape) Q() int { return (s.W+2*s.Pad-s.S)/s.Stride + 1 }

func (s Shape) String() string {
	return fmt.Sprintf("%d images of %d×%d×%d with %d filters of %d×%d, stride %d, padding %d", s.N, s.H, s.W, s.C, s.K,
		s.R, s.S, s.Stride, s.Pad)
}

// convolution names a shape in errors.
type convolution struct{ Shape }

func (c convolution) String() string { return "a convolution of " + c.Shape.String() }

// Direction selects the convolution or one of its two gradients.
type Direction int

const (
	Forward Direction = iota
	GradX
	GradW
)

// Conv is a convolution, or one of its gradients, with a chosen implementation. It belongs to the
// thread of its Handle.
type Conv struct {
	Workspace int // bytes

	h         *Handle
	shape     Shape
	direction Direction
	of        Type
	algo      int32
	plan      *executionPlan // if nil, algo is used
	hasRun    bool           // the plan has run at least once
	// the first run of the plan failed, and algo is used instead
	refused bool
	how     Selection                          // selects that algorithm
	product func(x, w, y driver.Pointer) error // if not nil, used instead of both
	math    Math
	x, y    Tensor
	w       Filter
	conv    Descriptor
}

// NewConv describes a convolution and selects its implementation.
func (h *Handle) NewConv(s Shape, d Direction, of Type, m Math, how Selection) (*Conv, error) {
	c := &Conv{h: h, shape: s, direction: d, of: of, how: how, math: m}
	if err := c.describe(of, m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	if err := c.choose(how, m); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// describe passes the shapes to the library. Filters are stored as K, R, S, C.
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

// Run enqueues the convolution on the stream: y = x ⋆ w or, by direction, dx from dy and w, or dw
// from x and dy. dx and dw are passed as x and w.
func (c *Conv) Run(x, w, y, workspace driver.Pointer) error {
	if c.product != nil {
		return c.product(x, w, y)
	}
	if c.plan == nil || c.refused {
		return c.runAlgorithm(x, w, y, workspace)
	}
	err := c.plan.run(addresses{x, w, y, workspace})
	if err == nil || c.hasRun {
		c.hasRun = true
		return err
	}
	if c.recommendedAlgorithm(c.how, c.math) != nil {
		return err
	}
	c.refused = true
	return c.runAlgorithm(x, w, y, workspace)
}

func (c *Conv) runAlgorithm(x, w, y, workspace driver.Pointer) error {
	a, h := c.h.api, c.h
	var r Status
	switch c.direction {
	case Forward:
		r = a.Forward(h.h, h.one, c.x, x, c.w, w, c.conv, c.algo, workspace, uintptr(c.Workspace), h.zero, c.y, y)
	case GradX:
		r = a.BackwardData(h.h, h.one, c.w, w, c.y, y, c.conv, c.algo, workspace, uintptr(c.Workspace), h.zero, c.x, x)
	case GradW:
		r = a.BackwardFilter(h.h, h.one, c.x, x, c.y, y, c.conv, c.algo, workspace, uintptr(c.Workspace), h.zero, c.w,
			w)
	}
	return a.check(r, "a convolution of %v", c.shape)
}

// Route names the implementation, for messages: an algorithm, or an engine of the graph API with
// its settings.
func (c *Conv) Route() string {
	if c.product != nil {
		return "matrix product"
	}
	if c.plan != nil && !c.refused {
		return "graph, " + c.plan.engine.String()
	}
	return fmt.Sprintf("algorithm %d", c.algo)
}

// use selects a plan.
func (c *Conv) use(p *executionPlan) { c.plan, c.Workspace = p, p.memory }

// Close destroys the library's descriptors of the convolution.
func (c *Conv) Close() error {
	a := c.h.api
	err := c.plan.close()
	for _, r := range []Status{a.DestroyTensor(c.x), a.DestroyTensor(c.y), a.DestroyFilter(c.w),
		a.DestroyConv(c.conv)} {
		err = errors.Join(err, a.check(r, "closing a convolution"))
	}
	return err
}
