package cuda

import (
	"runtime"

	"fspda/cuda/kernels"
	"fspda/device"
)

// conversions has a lowering for every work that is no call.
var conversions = map[work]lowering{
	narrow:          launching(narrowRows),
	widen:           launching(widenRows),
	narrowStretches: shadows,
	scaleLoss:       launching(scaleGradient),
	unscale:         launching(unscaleGradient),
	dropFound:       launching(dropGradient),
	stepScale:       launching(stepScaler),
}

func narrowRows(x operands) []kernels.Call {
	if x.in[0] == x.out[0] { // examples that came as bytes: see plan.examples
		return nil
	}
	if n := x.task.in[0].n; x.columns == x.room {
		return []kernels.Call{kernels.Narrow(x.element(), x.out[0], x.in[0], 0, n)}
	}
	return []kernels.Call{kernels.Pad(x.element(), x.out[0], x.in[0], x.task.in[0].n/x.columns, x.columns, x.room)}
}

func widenRows(x operands) []kernels.Call {
	return []kernels.Call{kernels.Widen(x.task.in[0].element, x.out[0], x.in[0], 0, x.task.in[0].n)}
}

func scaleGradient(x operands) []kernels.Call {
	return []kernels.Call{kernels.ScaleBy(x.out[0], x.out[0], x.scaler, 1, x.task.out[0].n)}
}

func unscaleGradient(x operands) []kernels.Call {
	return []kernels.Call{kernels.Unscale(x.out[0], x.scaler, x.task.out[0].n)}
}

func dropGradient(x operands) []kernels.Call {
	return []kernels.Call{kernels.Drop(x.out[0], x.scaler, x.task.out[0].n)}
}

func stepScaler(x operands) []kernels.Call {
	return []kernels.Call{kernels.ScalerStep(x.scaler, scaleGrowth, scaleBackoff, largestScale, scaleInterval)}
}

// stretchTable is a list of stretches in device memory.
type stretchTable struct {
	block block
	count int
}

// shadows is the task that rounds the parameters.
func shadows(d *Device, t *task) (step, error) {
	table, err := d.stretchTable(t.stretches)
	if err != nil {
		return nil, err
	}
	e := d.precision.element()
	return func(r *running) error {
		return r.o.launch(kernels.NarrowStretches(e, r.spaces[device.Arena], r.spaces[device.Params], table.block.address(), table.count))
	}, nil
}

// stretchTable copies stretches to the device.
func (d *Device) stretchTable(stretches []kernels.Stretch) (*stretchTable, error) {
	var bytes []byte
	for _, s := range stretches {
		bytes = s.AppendTo(bytes)
	}
	b, err := d.newBlock(bytes)
	if err != nil {
		return nil, err
	}
	table := &stretchTable{b, len(stretches)}
	runtime.AddCleanup(table, d.owner.discard, b)
	return table, nil
}
