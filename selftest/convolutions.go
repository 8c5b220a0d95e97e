package selftest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fspda/cpu"
	"fspda/device"
	"fspda/dist"
	"fspda/internal/rng"
)

// convolver is a device that can run every implementation of a convolution. A run chooses the
// fastest, but the networks here use a deterministic one, so all are tried.
type convolver interface {
	TryConvolution(c *device.Call, in [][]float32, out int, visit func(route string, out []float32, err error)) error
}

// shapes returns the kinds of convolutions in residual networks: n, h, w, c, k, r, s, stride and
// padding. The fourth channel of images is padding.
func (t Target) shapes() map[string][]int {
	if t.Small {
		return map[string][]int{"1×1": {2, 3, 5, 8, 16, 1, 1, 1, 0}, "3×3": {2, 5, 6, 8, 8, 3, 3, 1, 1}}
	}
	return map[string][]int{
		"1×1": {4, 14, 14, 64, 128, 1, 1, 1, 0}, "1×1/2": {4, 14, 14, 64, 128, 1, 1, 2, 0},
		"3×3": {4, 14, 14, 64, 64, 3, 3, 1, 1}, "3×3/2": {4, 14, 14, 64, 64, 3, 3, 2, 1},
		"7×7/2 of pictures": {2, 64, 64, 4, 64, 7, 7, 2, 3}, "3×3, few channels": {4, 8, 8, 16, 16, 3, 3, 1, 1}}
}

func (t Target) convolutions() (all []Check) {
	dev, ok := t.Device.(convolver)
	if !ok {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(t.shapes())) {
		for _, k := range []device.Kernel{device.Conv, device.ConvGradX, device.ConvGradW} {
			all = append(all, Check{"convolutions/" + string(k) + " " + name, func(context.Context) (string, error) {
				return t.everyImplementation(dev, newConvolution(k, t.shapes()[name], t.Precision))
			}})
		}
	}
	return all
}

// convolution is a call with its inputs, rounded to the precision, and the CPU's result.
type convolution struct {
	call *device.Call
	in   [][]float32
	want []float32
	err  error
}

func newConvolution(k device.Kernel, dims []int, precision string) (c convolution) {
	n, h, w, ch, f, r, s, stride, pad := dims[0], dims[1], dims[2], dims[3], dims[4], dims[5], dims[6], dims[7], dims[8]
	x, weights, y := n*h*w*ch, f*r*s*ch, n*((h+2*pad-r)/stride+1)*((w+2*pad-s)/stride+1)*f
	sizes := map[device.Kernel][3]int{device.Conv: {x, weights, y}, device.ConvGradX: {y, weights, x},
		device.ConvGradW: {x, y, weights}}[k]
	c.call = &device.Call{Kernel: k, Dims: dims}
	stream := rng.New(1, "convolutions")
	for _, size := range sizes[:2] {
		v := make([]float32, size)
		for i := range v {
			v[i] = float32(stream.Norm())
		}
		if as, ok := map[string]dist.ValueFormat{"fp16": dist.FP16, "bf16": dist.BF16}[precision]; ok {
			as.Round(v)
		}
		c.in = append(c.in, v)
	}
	c.want = make([]float32, sizes[2])
	c.err = cpu.Call(c.call, c.in, [][]float32{c.want})
	return c
}

// everyImplementation compares all implementations of a convolution with the CPU. One that cannot
// run is never chosen, and is no failure if another runs.
func (t Target) everyImplementation(dev convolver, c convolution) (string, error) {
	if c.err != nil {
		return "", fmt.Errorf("on the CPU: %w", c.err)
	}
	bound, worst, ran, refused := BoundsOf(t.Precision).Convolution, 0.0, 0, 0
	var wrong []error
	err := dev.TryConvolution(c.call, c.in, len(c.want), func(route string, out []float32, err error) {
		if err != nil {
			refused++
			return
		}
		ran++
		far := distance(out, c.want)
		if !(far <= bound) {
			wrong = append(wrong, fmt.Errorf("%s: the result differs from the CPU's by %.2g of its norm, at most "+
				"%.2g is allowed", route, far, bound))
		}
		worst = max(worst, far)
	})
	if err == nil && ran == 0 {
		err = fmt.Errorf("none of %d implementations can run", refused)
	}
	if err != nil || len(wrong) > 0 {
		return "", errors.Join(append([]error{err}, wrong...)...)
	}
	route, err := t.route(c)
	return fmt.Sprintf("%d implementations within %.1e of %.0e, %d cannot run; chosen: %s", ran, worst, bound, refused,
		route), err
}

// route returns the implementation that the device chooses.
func (t Target) route(c convolution) (string, error) {
	code := &device.Code{Name: "a convolution", Batch: 1, Features: 1, Calls: []device.Call{*c.call}}
	call := &code.Calls[0]
	for _, v := range c.in {
		call.In = append(call.In, device.Ref{Space: device.Params, Off: code.Dim, Len: len(v)})
		code.Dim += (len(v) + 63) / 64 * 64
	}
	call.Out, code.Arena = []device.Ref{{Space: device.Arena, Len: len(c.want)}}, len(c.want)
	p, err := t.Device.Load(code)
	if err != nil {
		return "", err
	}
	for _, route := range p.Routes() {
		_, how, _ := strings.Cut(route, ": ")
		return how, nil
	}
	return "unknown", nil
}
