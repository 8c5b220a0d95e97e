package cuda

import (
	"slices"

	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/cuda/orthogonal"
	"fspda/device"
)

// batchedOrthogonalize is an Orthogonalize. Matrices of one shape are a batch, also across the
// vectors of agents.
type batchedOrthogonalize struct {
	executor.Op
	device *Device
	at     kernels.Address
	list   *listCopy[device.Orthogonal]
}

func (o *batchedOrthogonalize) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*batchedOrthogonalize)
	return ok && x.list == o.list
}

func (o *batchedOrthogonalize) LevelStride() int { return 1 }

func (o *batchedOrthogonalize) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	if err := ex.Collector.Flush(); err != nil {
		return err
	}
	var vectors []kernels.Address
	for _, p := range ops {
		vectors = append(vectors, p.Batch.(*batchedOrthogonalize).at)
	}
	return o.device.orthogonalizer().Send(o.list.items, o.list.address(), vectors)
}

func (d *Device) sendOrthogonalize(op *device.Op) {
	matrices := slices.DeleteFunc(slices.Clone(op.Matrices), func(m device.Orthogonal) bool { return m.Len() == 0 })
	if len(matrices) == 0 {
		return
	}
	slices.SortStableFunc(matrices, func(a, b device.Orthogonal) int {
		return orthogonal.ShapeOf(a).Compare(orthogonal.ShapeOf(b))
	})
	list := d.matrices.of(d.exec, matrices, kernels.OrthogonalList)
	if list == nil {
		return
	}
	made := &batchedOrthogonalize{device: d, at: d.operand(op.Out[0]).address(), list: list}
	made.Batch = made
	d.declare(&made.Op, op)
	d.exec.EnqueueOp(&made.Op)
}

// orthogonalizer returns what sends orthogonalizations. In the precisions tf32 and bf16 its
// products round their factors, in bf16 also their results. In fp32 and fp16 they are in float32.
// The executor calls it.
func (d *Device) orthogonalizer() *orthogonal.Orthogonalizer {
	if d.orthogonal == nil {
		d.orthogonal = &orthogonal.Orthogonalizer{Ex: d.exec, BLAS: d.handles.blas, LT: d.handles.lt,
			Compute: d.compute()}
		if d.precision == BF16 {
			d.orthogonal.Element = kernels.BF16
		}
	}
	return d.orthogonal
}

// FactorBits returns the bits to which products of an Orthogonalize round their factors.
func (d *Device) FactorBits() int {
	switch d.precision {
	case TF32:
		return 11
	case BF16:
		return 8
	}
	return 24
}
