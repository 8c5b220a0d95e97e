package devicetest

import (
	"fmt"

	"fspda/device"
	"fspda/internal/rng"
)

// checkBytes checks that a batch of bytes gives the same bits as the decoded values, with and
// without Rows, and that one Program accepts both forms alternately.
func checkBytes(f *field) {
	for _, c := range []struct {
		kernel   device.Kernel
		dims     []int // the first is the batch size
		features int
		channels int
	}{
		{device.Linear, []int{1, 5, 3}, 3, 1},
		{device.Linear, []int{70, 33, 17}, 17, 1},
		{device.Linear, []int{300, 4, 500}, 500, 1},
		{device.LinearSigmoid, []int{65, 100, 784}, 784, 1},
		{device.LinearReLU, []int{33, 7, 400}, 400, 1},
		{device.LinearReLU, []int{40, 7, 48}, 48, 3},
		{device.LinearGradW, []int{32, 5, 100}, 100, 1},
		{device.LinearGradW, []int{401, 9, 77}, 77, 1},
		{device.LinearGradWDecay, []int{64, 30, 784}, 784, 1},
		{device.LinearGradWDecay, []int{64, 3, 30}, 30, 3},
		{device.Conv, []int{2, 5, 5, 3, 4, 3, 3, 1, 1}, 75, 3},
	} {
		call := &device.Call{Kernel: c.kernel, Dims: c.dims, Attr: 0.25}
		p := fromInput(call, kernelInputs(call))
		p.code.Batch, p.code.Features = c.dims[0], c.features
		of := bytesLike(c.dims[0], c.features, c.channels)
		picked := of
		picked.Bytes, picked.Rows = of.Bytes[len(of.Bytes)/2:], make([]int32, c.dims[0])
		for i := range picked.Rows {
			picked.Rows[i] = int32(i * 7 % c.dims[0])
		}
		of.Bytes = of.Bytes[len(of.Bytes)/2:]
		prog := f.load(p.code)
		params := f.vector(p.params)
		for _, b := range []device.Batch{of, picked, of} {
			what := fmt.Sprintf("%s %v of bytes with %d channels, picked %t", c.kernel, c.dims, c.channels,
				b.Rows != nil)
			equal(f, what, p.results(f, prog, params, b),
				widen(p.results(f, prog, params, device.Batch{X: b.Numbers(nil, c.features), Y: b.Y})))
		}
		f.done()
	}
}

// bytesLike returns random bytes, twice as many as the batch needs, and their scales and shifts.
func bytesLike(examples, features, channels int) device.Batch {
	b := device.Batch{Bytes: make([]uint8, 2*examples*features), Y: make([]int32, examples)}
	s := rng.New(9, "bytes", uint64(examples), uint64(features))
	for i := range b.Bytes {
		b.Bytes[i] = uint8(s.IntN(256))
	}
	for c := range channels {
		b.Scale, b.Shift = append(b.Scale, 0.0071/float32(c+1)), append(b.Shift, 0.3*float32(c)-0.9)
	}
	return b
}

// results runs the code once and returns its results.
func (p *placement) results(f *field, prog device.Program, params device.Vector, b device.Batch) []float32 {
	f.Helper()
	out, got := make([]float64, len(p.code.Results)), make([]float32, len(p.code.Results))
	f.must(prog.Run(params, nil, b, out))
	for i, v := range out {
		got[i] = float32(v)
	}
	return got
}
