package cuda

import (
	"runtime"

	"fspda/cuda/compiler"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// deviceList is a list in device memory, for kernels that serve many parameters.
type deviceList struct {
	block executor.Block
	count int
}

// newList copies a list of `count` entries to the device.
func (d *Device) newList(bytes []byte, count int) (*deviceList, error) {
	b, err := d.exec.NewBlock(bytes)
	if err != nil {
		return nil, err
	}
	l := &deviceList{b, count}
	runtime.AddCleanup(l, d.exec.Discard, b)
	return l, nil
}

// lowerCastParams is the lowering of the task that rounds the parameters.
func lowerCastParams(l *lowerer, t *compiler.Task) (step, error) {
	var bytes []byte
	for _, s := range t.Casts {
		bytes = s.AppendTo(bytes)
	}
	list, err := l.newList(bytes, len(t.Casts))
	if err != nil {
		return nil, err
	}
	e := l.precision.Element()
	return func(env *launchEnv) error {
		return env.ex.Launch(kernels.NarrowSegments(e, env.spaces[device.Arena], env.spaces[device.Params],
			list.block.Address(), list.count))
	}, nil
}

// lowerUpdateBuffers is the lowering of the task that updates buffers.
func lowerUpdateBuffers(l *lowerer, t *compiler.Task) (step, error) {
	var bytes []byte
	for i, m := range t.BufferUpdates {
		m.X = t.In[i].Offset / 4
		bytes = m.AppendTo(bytes)
	}
	list, err := l.newList(bytes, len(t.BufferUpdates))
	if err != nil {
		return nil, err
	}
	return func(env *launchEnv) error {
		return env.ex.Launch(kernels.MoveAverages(env.spaces[device.Buffers], env.spaces[device.Arena],
			env.spaces[device.Momentum], list.block.Address(), list.count))
	}, nil
}

// lowerPenalties is the lowering of the task that adds penalties to a loss.
func lowerPenalties(l *lowerer, t *compiler.Task) (step, error) {
	p := kernels.NewPenalties(t.Penalties)
	list, err := l.newList(p.Bytes(), len(t.Penalties))
	if err != nil {
		return nil, err
	}
	return func(env *launchEnv) error {
		return env.ex.Launch(p.Add(env.address(t.Out[0]), env.address(t.In[0]), env.spaces[device.Params],
			list.block.Address(), env.scratch)...)
	}, nil
}

// lowerFinishGradient is the lowering of the task that finishes a gradient.
func lowerFinishGradient(l *lowerer, t *compiler.Task) (step, error) {
	var bytes []byte
	count := 0
	for i, e := range t.Finishes {
		e.From = t.In[i].Offset / t.In[i].Element.Size()
		for _, piece := range e.Split() {
			bytes = piece.AppendTo(bytes)
			count++
		}
	}
	list, err := l.newList(bytes, count)
	if err != nil {
		return nil, err
	}
	e := l.precision.Element()
	return func(env *launchEnv) error {
		return env.ex.Launch(kernels.FinishGradient(e, env.spaces[device.Grads], env.spaces[device.Arena],
			env.spaces[device.Params], list.block.Address(), env.scaler, list.count))
	}, nil
}
