package cuda

import (
	"runtime"

	"fspda/cuda/kernels"
	"fspda/device"
)

// list is a list in device memory of what a kernel does.
type list struct {
	block block
	count int
}

// newList copies a list of so many entries to the device.
func (d *Device) newList(bytes []byte, count int) (*list, error) {
	b, err := d.newBlock(bytes)
	if err != nil {
		return nil, err
	}
	l := &list{b, count}
	runtime.AddCleanup(l, d.owner.discard, b)
	return l, nil
}

// shadows is the task that rounds the parameters.
func shadows(d *Device, t *task) (step, error) {
	var bytes []byte
	for _, s := range t.stretches {
		bytes = s.AppendTo(bytes)
	}
	l, err := d.newList(bytes, len(t.stretches))
	if err != nil {
		return nil, err
	}
	e := d.precision.element()
	return func(r *running) error {
		return r.o.launch(kernels.NarrowStretches(e, r.spaces[device.Arena], r.spaces[device.Params], l.block.address(),
			l.count))
	}, nil
}

// moveAll is the task that moves buffers.
func moveAll(d *Device, t *task) (step, error) {
	var bytes []byte
	for i, m := range t.moves {
		m.X = t.in[i].at / 4
		bytes = m.AppendTo(bytes)
	}
	l, err := d.newList(bytes, len(t.moves))
	if err != nil {
		return nil, err
	}
	return func(r *running) error {
		return r.o.launch(kernels.MoveAverages(r.spaces[device.Buffers], r.spaces[device.Arena],
			r.spaces[device.Momentum], l.block.address(), l.count))
	}, nil
}

// addAll is the task that adds penalties to a loss.
func addAll(d *Device, t *task) (step, error) {
	p := kernels.PenaltiesOf(t.penalties)
	l, err := d.newList(p.Bytes(), len(t.penalties))
	if err != nil {
		return nil, err
	}
	return func(r *running) error {
		return r.o.launch(p.Add(r.at(t.out[0]), r.at(t.in[0]), r.spaces[device.Params], l.block.address(),
			r.scratch)...)
	}, nil
}

// endAll is the task that finishes a gradient.
func endAll(d *Device, t *task) (step, error) {
	var bytes []byte
	count := 0
	for i, e := range t.endings {
		e.From = t.in[i].at / t.in[i].element.Size()
		for _, piece := range e.Split() {
			bytes = piece.AppendTo(bytes)
			count++
		}
	}
	l, err := d.newList(bytes, count)
	if err != nil {
		return nil, err
	}
	e := d.precision.element()
	return func(r *running) error {
		return r.o.launch(kernels.EndGradient(e, r.spaces[device.Grads], r.spaces[device.Arena],
			r.spaces[device.Params], l.block.address(), r.scaler, l.count))
	}, nil
}
