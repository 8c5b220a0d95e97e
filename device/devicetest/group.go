package devicetest

import (
	"math"

	"fspda/device"
	"fspda/internal/rng"
)

// groupKernels normalize groups of the channels of each image.
var groupKernels = map[device.Kernel]language{
	device.GroupNorm:            {interpretGroupNorm, groupCalls, groupInputs, groupNormBounds},
	device.GroupNormReLU:        {interpretGroupNorm, groupCalls, groupInputs, groupNormBounds},
	device.GroupNormAddReLU:     {interpretGroupNorm, groupCalls, groupInputs, groupNormBounds},
	device.GroupNormGrad:        {interpretGroupGrad, groupCalls, groupGradInputs, groupGradBounds},
	device.GroupNormReLUGrad:    {interpretGroupGrad, groupCalls, groupGradInputs, groupGradBounds},
	device.GroupNormAddReLUGrad: {interpretGroupGrad, groupCalls, groupGradInputs, groupGradBounds},
	device.EvoNorm:              {interpretEvoNorm, groupCalls, groupInputs, evoNormBounds},
	device.EvoNormGrad:          {interpretEvoGrad, groupCalls, evoGradInputs, evoGradBounds},
}

// groupCalls has one channel a group, one group, and widths between vectors; more pixels and more
// channels than a block of sums.
func groupCalls(add func(attr float64, dims ...int)) {
	add(1e-2, 1, 1, 1, 1)
	add(1e-2, 2, 3, 4, 2)
	add(1e-3, 3, 5, 6, 3)
	add(0.25, 1, 9, 8, 1)
	add(1e-5, 2, 16, 32, 2)
	add(1e-3, 3, 49, 17, 17)
	add(1e-3, 2, 7, 33, 3)
	add(1e-5, 5, 64, 64, 2)
	add(1e-5, 2, 600, 5, 1)
	add(1e-5, 2, 3, 1040, 2)
	add(1e-3, 40, 2, 6, 3)
	add(1e-3, 1, 2, 80, 40)
}

// groupOf indexes the statistics of the group of number i of x.
type groupOf struct{ m, c, g int }

func groups(c *device.Call) groupOf { return groupOf{c.Dims[1], c.Dims[2], c.Dims[3]} }

// of returns the group and the channel of number i.
func (s groupOf) of(i int) (group, channel int) {
	channel = i % s.c
	return i/(s.m*s.c)*s.g + channel/(s.c/s.g), channel
}

func (s groupOf) numbers() float64 { return float64(s.m * s.c / s.g) }

// groupInputs gives some channels a large mean.
func groupInputs(c *device.Call, in [][]float32) {
	for i := range in[0] {
		if _, j := groups(c).of(i); j%3 == 1 {
			in[0][i] += 100
		}
	}
}

// groupGradInputs makes the statistics plausible, and y the output of a ReLU.
func groupGradInputs(c *device.Call, in [][]float32) {
	groupInputs(c, in)
	s, at := rng.New(5, string(c.Kernel)), 3
	if c.Kernel != device.GroupNormGrad {
		at = 4
		replace(in[1], positive)
	}
	plausible(c, in[0], in[at], in[at+1], &s)
}

func evoGradInputs(c *device.Call, in [][]float32) {
	s := rng.New(5, string(c.Kernel))
	plausible(c, in[0], in[4], in[5], &s)
}

// plausible sets mean and variance to about those that the groups of x have, so that gradients are
// no larger than 16-bit numbers can be.
func plausible(c *device.Call, x, mean, variance []float32, s *rng.Stream) {
	wide, of := make([]float64, len(x)), make([]float64, len(mean))
	spread := make([]float64, len(variance))
	for i, v := range x {
		wide[i] = float64(v)
	}
	groupStatistics(c, wide, of, spread)
	for k := range mean {
		mean[k] = float32(of[k]) + s.Float32()
		variance[k] = 0.1 + float32(spread[k])*(0.5+s.Float32()) + s.Float32()
	}
}

// groupStatistics computes mean and variance of every group in two passes.
func groupStatistics(c *device.Call, x, mean, variance []float64) {
	s := groups(c)
	clear(mean)
	clear(variance)
	for i, v := range x {
		k, _ := s.of(i)
		mean[k] += v / s.numbers()
	}
	for i, v := range x {
		k, _ := s.of(i)
		variance[k] += (v - mean[k]) * (v - mean[k]) / s.numbers()
	}
}

func interpretGroupNorm(c *device.Call, in, out [][]float64) {
	groupStatistics(c, in[0], out[1], out[2])
	for i, v := range in[0] {
		k, j := groups(c).of(i)
		y := in[1][j]*(v-out[1][k])/math.Sqrt(out[2][k]+c.Attr) + in[2][j]
		if c.Kernel == device.GroupNormAddReLU {
			y += in[3][i]
		}
		if c.Kernel != device.GroupNorm {
			y = math.Max(y, 0)
		}
		out[0][i] = y
	}
}

// groupNormBounds allows five roundings of each part of y.
func groupNormBounds(c *device.Call, in, want, b [][]float64) {
	groupStatisticBounds(c, in[0], want, b)
	for i, x := range in[0] {
		k, j := groups(c).of(i)
		d := in[1][j] * (x - want[1][k]) / math.Sqrt(want[2][k]+c.Attr)
		b[0][i] = 5*unit*(math.Abs(d)+math.Abs(in[2][j])) + 2*unit*math.Abs(want[0][i]) + smallest
		if c.Kernel == device.GroupNormAddReLU {
			b[0][i] += unit * math.Abs(in[3][i])
		}
	}
}

// groupStatisticBounds allows one rounding, and the float64 error of the largest summand.
func groupStatisticBounds(c *device.Call, x []float64, want, b [][]float64) {
	for i, v := range x {
		k, _ := groups(c).of(i)
		b[1][k] = math.Max(b[1][k], 0x1p-44*math.Abs(v))
		b[2][k] = math.Max(b[2][k], 0x1p-44*v*v)
	}
	for k := range b[1] {
		b[1][k] += unit * math.Abs(want[1][k])
		b[2][k] += (unit+0x1p-36)*want[2][k] + smallest
	}
}

// groupOperands are the inputs of a gradient of GroupNorm; g is the gradient after its ReLU mask.
type groupOperands struct {
	groupOf
	eps                         float64
	x, g, gamma, mean, variance []float64
}

func groupGradOperands(c *device.Call, in [][]float64) *groupOperands {
	n := &groupOperands{groupOf: groups(c), eps: c.Attr, x: in[0]}
	rest := in[1:]
	if c.Kernel != device.GroupNormGrad {
		rest = in[2:]
	}
	n.g = append(n.g, rest[0]...)
	if c.Kernel != device.GroupNormGrad {
		for i, y := range in[1] {
			if !(y > 0) {
				n.g[i] = 0
			}
		}
	}
	n.gamma, n.mean, n.variance = rest[1], rest[2], rest[3]
	return n
}

func (n *groupOperands) inverse(k int) float64 { return 1 / math.Sqrt(n.variance[k]+n.eps) }

// sums returns the sums of gamma·g and of gamma·g·x̂ of each group.
func (n *groupOperands) sums() (p, q []float64) {
	p, q = make([]float64, len(n.mean)), make([]float64, len(n.mean))
	for i, g := range n.g {
		k, j := n.of(i)
		p[k] += n.gamma[j] * g
		q[k] += n.gamma[j] * g * (n.x[i] - n.mean[k]) * n.inverse(k)
	}
	return p, q
}

func interpretGroupGrad(c *device.Call, in, out [][]float64) {
	n := groupGradOperands(c, in)
	dgamma, dbeta := out[len(out)-2], out[len(out)-1]
	clear(dgamma)
	clear(dbeta)
	p, q := n.sums()
	for i, g := range n.g {
		k, j := n.of(i)
		normal := (n.x[i] - n.mean[k]) * n.inverse(k)
		dbeta[j] += g
		dgamma[j] += g * normal
		out[0][i] = n.inverse(k) * (n.gamma[j]*g - p[k]/n.numbers() - normal*q[k]/n.numbers())
	}
	if c.Kernel == device.GroupNormAddReLUGrad {
		copy(out[1], n.g)
	}
}

func groupGradBounds(c *device.Call, in, want, b [][]float64) {
	n := groupGradOperands(c, in)
	forGamma, forBeta := b[len(b)-2], b[len(b)-1]
	p, q := n.sums()
	for k := range p { // the sums are in float64
		p[k], q[k] = math.Abs(p[k])+1e-9, math.Abs(q[k])+1e-9
	}
	for i, g := range n.g {
		k, j := n.of(i)
		normal := math.Abs(n.x[i]-n.mean[k]) * n.inverse(k)
		forBeta[j] += 0x1p-44 * math.Abs(g)
		forGamma[j] += 0x1p-44 * math.Abs(g) * normal
		parts := math.Abs(n.gamma[j]*g) + (p[k]+normal*q[k])/n.numbers()
		b[0][i] = 5*unit*n.inverse(k)*parts + smallest
	}
	for j := range forBeta {
		forBeta[j] += unit*math.Abs(want[len(want)-1][j]) + smallest
		forGamma[j] += 2*unit*math.Abs(want[len(want)-2][j]) + smallest
	}
}

func gate(t float64) float64 { return 1 / (1 + math.Exp(-t)) }

func interpretEvoNorm(c *device.Call, in, out [][]float64) {
	groupStatistics(c, in[0], out[1], out[2])
	for i, x := range in[0] {
		k, j := groups(c).of(i)
		out[0][i] = in[1][j]*x*gate(in[3][j]*x)/math.Sqrt(out[2][k]+c.Attr) + in[2][j]
	}
}

// gateUnits is the relative error of a sigmoid of t, in units: the relative error of
// the argument of an exponential.
func gateUnits(t float64) float64 { return 8 + 2*math.Abs(t) }

func evoNormBounds(c *device.Call, in, want, b [][]float64) {
	groupStatisticBounds(c, in[0], want, b)
	for i, x := range in[0] {
		k, j := groups(c).of(i)
		t, scale := in[3][j]*x, math.Abs(in[1][j]*x)/math.Sqrt(want[2][k]+c.Attr)
		b[0][i] = unit*gateUnits(t)*scale*gate(t) + 2*unit*math.Abs(want[0][i]) + smallest*(1+scale)
	}
}

// evoGradient are the parts of a gradient of EvoNorm by number, and its sums.
type evoGradient struct {
	k, j                  int
	inverse, t, s, slope  float64
	x, dy, gamma, forV, d float64
}

func eachEvo(c *device.Call, in [][]float64, run func(i int, e evoGradient)) {
	for i, x := range in[0] {
		k, j := groups(c).of(i)
		e := evoGradient{k: k, j: j, inverse: 1 / math.Sqrt(in[5][k]+c.Attr), t: in[3][j] * x, x: x, dy: in[1][i],
			gamma: in[2][j], d: x - in[4][k]}
		e.s = gate(e.t)
		w := e.s * (1 - e.s)
		e.slope, e.forV = e.s+e.t*w, x*x*w
		run(i, e)
	}
}

func interpretEvoGrad(c *device.Call, in, out [][]float64) {
	for _, o := range out[1:] {
		clear(o)
	}
	sums := make([]float64, len(in[4]))
	eachEvo(c, in, func(_ int, e evoGradient) {
		out[1][e.j] += e.dy * e.x * e.s * e.inverse
		out[2][e.j] += e.dy
		out[3][e.j] += e.dy * e.gamma * e.inverse * e.forV
		sums[e.k] += e.dy * e.gamma * e.x * e.s
	})
	eachEvo(c, in, func(i int, e evoGradient) {
		out[0][i] = e.dy*e.gamma*e.inverse*e.slope -
			sums[e.k]*cube(e.inverse)*e.d/groups(c).numbers()
	})
}

func evoGradBounds(c *device.Call, in, want, b [][]float64) {
	sums, exact := make([]float64, len(in[4])), make([]float64, len(in[4]))
	eachEvo(c, in, func(_ int, e evoGradient) {
		part := math.Abs(e.dy * e.x * e.s)
		b[1][e.j] += unit * gateUnits(e.t) * part * e.inverse
		b[2][e.j] += 0x1p-44 * math.Abs(e.dy)
		b[3][e.j] += unit * (8 + 2*gateUnits(e.t)) * math.Abs(e.dy*e.gamma*e.forV) * e.inverse
		sums[e.k] += unit * gateUnits(e.t) * part * math.Abs(e.gamma)
		exact[e.k] += e.dy * e.gamma * e.x * e.s
	})
	for i := 1; i <= 3; i++ {
		for j, w := range want[i] {
			b[i][j] += 2*unit*math.Abs(w) + smallest
		}
	}
	eachEvo(c, in, func(i int, e evoGradient) {
		slope := e.s + math.Abs(e.t)*e.s*(1-e.s)
		along := (sums[e.k] + 6*unit*math.Abs(exact[e.k])) * cube(e.inverse) / groups(c).numbers()
		b[0][i] = unit*2*gateUnits(e.t)*math.Abs(e.dy*e.gamma)*e.inverse*slope + along*math.Abs(e.d) +
			2*unit*math.Abs(want[0][i]) + smallest
	})
}

func cube(v float64) float64 { return v * v * v }
