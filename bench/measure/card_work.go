package measure

import (
	"strings"
	"time"

	"fspda/device"
	"fspda/internal/rng"
)

// Gradient returns a function that prepares repeated runs of code on the device, with the given
// parameters and random examples. Examples are bytes, as pixels are, and each run is started before
// the previous one has ended, as in training, so the device does not wait for inputs. A call
// returns the error of the previous run.
func (c *Card) Gradient(code *device.Code, params []float32, classes int) func() (func() error, error) {
	return func() (func() error, error) {
		p, err := c.Device.Load(code)
		if err != nil {
			return nil, err
		}
		x, grad := c.Device.NewVector(code.Dim), c.Device.NewVector(code.Dim)
		c.Device.Write(x, params)
		return ahead(p, x, grad, randomBatch(code, classes)), nil
	}
}

// randomBatch returns a batch of random images as bytes, or of windows of random tokens.
func randomBatch(code *device.Code, classes int) device.Batch {
	s := rng.New(1, "bench card")
	if code.Labels > 1 {
		b := device.Batch{Tokens: make([]uint16, code.Batch*code.Labels+1), Length: code.Labels}
		for i := range b.Tokens {
			b.Tokens[i] = uint16(s.IntN(classes))
		}
		for i := range code.Batch {
			b.At = append(b.At, int64(i*code.Labels))
		}
		return b
	}
	b := device.Batch{Bytes: make([]uint8, code.Batch*code.Features), Scale: []float32{1.0 / 64},
		Shift: []float32{-2}, Y: make([]int32, code.Batch)}
	for i := range b.Bytes {
		b.Bytes[i] = uint8(s.Uint64())
	}
	for i := range b.Y {
		b.Y[i] = int32(i % classes)
	}
	return b
}

// ahead returns a function that runs a program on a batch. On an asynchronous device it starts a
// run and then waits for the previous one.
func ahead(p device.Program, x, grad device.Vector, b device.Batch) func() error {
	out := make([]float64, len(p.Code().Results))
	before := func() error { return nil }
	return func() error {
		wait := p.Start(x, grad, nil, 0, b, out)
		err := before()
		before = wait
		return err
	}
}

// Bound is a kernel prepared for running on a device.
type Bound struct {
	Run   func() error
	Route string // the chosen implementation, if there are several
}

// Bind prepares running a kernel times times. The program contains nothing else: inputs are
// parameters, outputs are in the arena, and labels are labels.
func (c *Card) Bind(call *device.Call, in, out [][]float32, times int) (b Bound, err error) {
	code := &device.Code{Name: string(call.Kernel), Batch: 1, Features: 1}
	placed := *call
	placed.In, code.Dim = layout(device.Params, in)
	placed.Out, code.Arena = layout(device.Arena, out)
	batch := device.Batch{X: []float32{0}, Y: []int32{0}}
	switch call.Kernel {
	case device.SoftmaxCrossEntropy, device.SoftmaxCrossEntropyMixed, device.Score:
		m := call.Dims[0]
		placed.In[1] = device.Ref{Space: device.Labels, Len: len(in[1])}
		code.Batch, code.Mixed = m, call.Kernel == device.SoftmaxCrossEntropyMixed
		batch = device.Batch{X: make([]float32, m), Y: make([]int32, m)}
		each := len(in[1]) / m
		for i := range batch.Y {
			label := in[1][i*each:]
			batch.Y[i] = int32(label[0])
			if code.Mixed {
				batch.Mix = append(batch.Mix, device.Mix{Partner: int32(label[1]), Weight: label[2]})
			}
		}
	}
	for range times {
		code.Calls = append(code.Calls, placed)
	}
	p, err := c.Device.Load(code)
	if err != nil {
		return b, err
	}
	numbers, x := make([]float32, code.Dim), c.Device.NewVector(code.Dim)
	for i, r := range placed.In {
		if r.Space != device.Params {
			continue
		}
		copy(numbers[r.Off:], in[i])
	}
	c.Device.Write(x, numbers)
	return Bound{func() error { return p.Run(x, nil, batch, nil) }, routeOf(p)}, nil
}

// routeOf returns the implementation that a program of one kernel uses, empty if the device does
// not report it.
func routeOf(p device.Program) string {
	for _, route := range p.Routes() {
		if _, how, ok := strings.Cut(route, ": "); ok {
			return how
		}
	}
	return ""
}

// layout assigns consecutive offsets to operands, aligned for the widest loads.
func layout(space device.Space, operands [][]float32) (refs []device.Ref, length int) {
	const line = 64 // elements
	for _, v := range operands {
		refs = append(refs, device.Ref{Space: space, Off: length, Len: len(v)})
		length += (len(v) + line - 1) / line * line
	}
	return refs, length
}

// Peak returns a function that measures the rate of a product of two square matrices in GFLOP/s, 0
// if that fails.
func (c *Card) Peak(side int) func(time.Duration) float64 {
	const times = 5
	var run func() error
	return func(time.Duration) float64 {
		if run == nil {
			a, b, bias := make([]float32, side*side), make([]float32, side*side), make([]float32, side)
			fill(a, 1)
			fill(b, 2)
			call := &device.Call{Kernel: device.Linear, Dims: []int{side, side, side}}
			bound, err := c.Bind(call, [][]float32{a, b, bias}, [][]float32{make([]float32, side*side)}, times)
			if run = bound.Run; err != nil || repeat(run, 2) != nil {
				run = func() error { return err }
			}
		}
		took, err := c.Time(run)
		if err != nil || took <= 0 {
			return 0
		}
		return times * 2 * float64(side) * float64(side) * float64(side) / float64(took.Nanoseconds())
	}
}
