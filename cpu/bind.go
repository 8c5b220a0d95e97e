package cpu

import "fspda/device"

// Bound is a Program with all arguments of Run. It has the methods of gorgonia.VM, so that code
// that drives a Gorgonia machine can drive it: change the contents of params and of the batch
// between runs, not the slices themselves.
type Bound struct {
	Out []float64 // results of the last RunAll, in the order of Code.Results

	program      *Program
	params, grad device.Vector
	batch        device.Batch
}

// Bind fixes the arguments of Run.
func (p *Program) Bind(params, grad device.Vector, b device.Batch) *Bound {
	return &Bound{Out: make([]float64, len(p.results)), program: p, params: params, grad: grad, batch: b}
}

// RunAll runs the program once. Its errors are those of Run.
func (b *Bound) RunAll() error { return b.program.Run(b.params, b.grad, b.batch, b.Out) }

// Reset does nothing: every buffer is written before it is read.
func (b *Bound) Reset() {}

// Close does nothing: a Program holds only ordinary memory.
func (b *Bound) Close() error { return nil }
