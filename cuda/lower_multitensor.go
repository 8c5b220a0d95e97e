package cuda

import (
	"runtime"

	"fspda/cuda/kernels"
	"fspda/device"
)

// list is a list in device memory of what a kernel does.
type deviceList struct {
	block block
	count int
}

// newList copies a list of so many entries to the device.
func (d *Device) newList(bytes []byte, count int) (*deviceList, error) {
	b, err := d.newBlock(bytes)
	if err != nil {
		return nil, err
	}
	l := &deviceList{b, count}
	runtime.AddCleanup(l, d.exec.discard, b)
	return l, nil
}

// shadows is the task that rounds the parameters.
func lowerCastParams(d *Device, t *task) (step, error) {
	var bytes []byte
	for _, s := range t.casts {
		bytes = s.AppendTo(bytes)
	}
	l, err := d.newList(bytes, len(t.casts))
	if err != nil {
		return nil, err
	}
	e := d.precision.element()
	return func(env *launchEnv) error {
		return env.ex.launch(kernels.NarrowStretches(e, env.spaces[device.Arena], env.spaces[device.Params], l.block.address(),
			l.count))
	}, nil
}

// moveAll is the task that moves buffers.
func lowerUpdateBuffers(d *Device, t *task) (step, error) {
	var bytes []byte
	for i, m := range t.bufferUpdates {
		m.X = t.in[i].offset / 4
		bytes = m.AppendTo(bytes)
	}
	l, err := d.newList(bytes, len(t.bufferUpdates))
	if err != nil {
		return nil, err
	}
	return func(env *launchEnv) error {
		return env.ex.launch(kernels.MoveAverages(env.spaces[device.Buffers], env.spaces[device.Arena],
			env.spaces[device.Momentum], l.block.address(), l.count))
	}, nil
}

// addAll is the task that adds penalties to a loss.
func lowerPenalties(d *Device, t *task) (step, error) {
	p := kernels.PenaltiesOf(t.penalties)
	l, err := d.newList(p.Bytes(), len(t.penalties))
	if err != nil {
		return nil, err
	}
	return func(env *launchEnv) error {
		return env.ex.launch(p.Add(env.address(t.out[0]), env.address(t.in[0]), env.spaces[device.Params], l.block.address(),
			env.scratch)...)
	}, nil
}

// endAll is the task that finishes a gradient.
func lowerFinishGradient(d *Device, t *task) (step, error) {
	var bytes []byte
	count := 0
	for i, e := range t.finishes {
		e.From = t.in[i].offset / t.in[i].element.Size()
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
	return func(env *launchEnv) error {
		return env.ex.launch(kernels.EndGradient(e, env.spaces[device.Grads], env.spaces[device.Arena],
			env.spaces[device.Params], l.block.address(), env.scaler, l.count))
	}, nil
}
