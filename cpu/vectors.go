package cpu

import (
	"slices"

	"fspda/cpu/gemm"
	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
)

// Vector is a vector of this device.
type Vector = vec.Vector

// Index is a set of coordinates on this device.
type Index = vec.Index

// LabelError reports a label that is not a class. Run and Call return it, wrapped.
type LabelError = vec.LabelError

// Numbers of coordinates that are worth another goroutine.
const (
	leastAdamW  = 32 << 10
	leastVector = 64 << 10

	leastMultiply = 128 << 10 // multiplications

	// mostAlone is the largest matrix that one goroutine orthogonalizes. Its products are too short to
	// be shared well.
	mostAlone = 256 << 10
)

// Do implements device.Device.Do. Neighbours that are elementwise over vectors of one length are
// one pass over memory. Goroutines share long vectors.
func (d *Device) Do(ops ...device.Op) {
	vec.Check(ops)
	for len(ops) > 0 {
		count, n := vec.Pass(ops)
		switch least := leastOf(ops[:count]); {
		case n < 0 && ops[0].Kind == device.KindDot && d.shares(ops[0].In[0].Len(), least):
			d.dot(&ops[0])
		case n < 0 && ops[0].Kind == device.KindMultiply && d.teams != nil:
			d.multiply(&ops[0])
		case n < 0 && ops[0].Kind == device.KindOrthogonalize:
			d.orthogonalize(&ops[0])
		case n < 0 && ops[0].Only != nil:
			d.within(&ops[0])
		case n < 0:
			vec.Whole(&ops[0])
		case d.shares(n, least):
			pass := ops[:count]
			d.divide(n, least, func(from, to int) { vec.Part(pass, from, to) })
		default:
			vec.Part(ops[:count], 0, n)
		}
		ops = ops[count:]
	}
}

// leastOf returns how many coordinates of a pass are worth another goroutine.
func leastOf(pass []device.Op) int {
	for i := range pass {
		if pass[i].Kind == device.KindAdamW {
			return leastAdamW
		}
	}
	return leastVector
}

// shares reports whether goroutines share n coordinates.
func (d *Device) shares(n, least int) bool { return d.teams != nil && n >= 2*least }

// divide calls run with parts of n coordinates, each of at least least, on the goroutines of a team
// that no Program uses.
func (d *Device) divide(n, least int, run func(from, to int)) {
	team := d.teams.Acquire()
	defer d.teams.Release(team)
	o := kernel.Args{Workers: &kernel.Workers{Team: team}}
	o.Parallel(min(o.Threads(), n/least), func(_ *kernel.Args, part, of int) {
		run(kernel.SplitUnits(part, of, n, kernel.LineFloats))
	})
}

// dot computes a Dot of long vectors. The sums of blocks are added in their order.
func (d *Device) dot(op *device.Op) {
	sums := make([]float64, (op.In[0].Len()+vec.DotBlock-1)/vec.DotBlock)
	d.divide(len(sums), leastVector/vec.DotBlock, func(from, to int) { vec.DotBlocks(sums[from:to], op, from) })
	*op.Sum = 0
	for _, s := range sums {
		*op.Sum += s
	}
}

// multiply computes a Multiply. Goroutines share its parts.
func (d *Device) multiply(op *device.Op) {
	p := vec.ProductOf(op)
	parts, work := p.Size()
	if least := 1 + leastMultiply/max(1, work); d.shares(parts, least) {
		d.divide(parts, least, p.Part)
	} else {
		p.Part(0, parts)
	}
}

// orthogonalize computes an Orthogonalize. Goroutines share the products of large matrices, and
// small matrices if there are enough of them.
func (d *Device) orthogonalize(op *device.Op) {
	team := d.teams.Acquire()
	defer d.teams.Release(team)
	o := &kernel.Args{Workers: &kernel.Workers{Team: team}}
	x := vec.Data("Orthogonalize", op.Out[0])
	orthogonalize := func(o *kernel.Args, m *device.Orthogonal) {
		gemm.Orthogonalize(o, x[m.Offset:][:m.Len()], m.Rows, m.Cols, m.Scale)
	}
	var alone []*device.Orthogonal
	for i := range op.Matrices {
		if m := &op.Matrices[i]; m.Len() <= mostAlone && o.Threads() > 1 {
			alone = append(alone, m)
		} else {
			orthogonalize(o, m)
		}
	}
	if len(alone) < o.Threads() {
		for _, m := range alone {
			orthogonalize(o, m)
		}
		return
	}
	slices.SortStableFunc(alone, func(a, b *device.Orthogonal) int { return b.Len() - a.Len() })
	o.Parallel(len(alone), func(_ *kernel.Args, part, of int) { orthogonalize(&kernel.Args{}, alone[part]) })
}

// within computes an operation that is limited to ranges. Goroutines share long ones.
func (d *Device) within(op *device.Op) {
	least := leastOf([]device.Op{*op})
	for _, r := range op.Only {
		if n := r.To - r.From; d.shares(n, least) {
			d.divide(n, least, func(from, to int) { vec.Within(op, r.From+from, r.From+to) })
		} else {
			vec.Within(op, r.From, r.To)
		}
	}
}
