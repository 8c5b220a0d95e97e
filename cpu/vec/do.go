package vec

import "fspda/device"

// fuseBlock is how many numbers of its vectors an operation computes before the next one: the
// blocks of a dozen vectors stay in the first-level cache.
const fuseBlock = 1024

// Do implements [device.Device.Do] on the calling goroutine.
func (Ops) Do(ops ...device.Op) {
	Check(ops)
	for len(ops) > 0 {
		count, n := Pass(ops)
		if n < 0 {
			Whole(&ops[0])
		} else {
			Part(ops[:count], 0, n)
		}
		ops = ops[count:]
	}
}

// Check panics unless the lengths of all operations fit.
func Check(ops []device.Op) {
	for i := range ops {
		ops[i].Check()
	}
}

// Pass returns how many of the first operations [Part] computes in one pass over memory: they are
// elementwise, and their vectors have n numbers. If the first operation is not elementwise, count
// is 1 and n is negative.
func Pass(ops []device.Op) (count, n int) {
	n, ok := ops[0].Elementwise()
	if !ok {
		return 1, -1
	}
	for count = 1; count < len(ops); count++ {
		if next, ok := ops[count].Elementwise(); !ok || next != n {
			break
		}
	}
	return count, n
}

// Part computes the coordinates from, ..., to-1 of elementwise operations on vectors of one length.
// It is the place where operations are fused.
func Part(ops []device.Op, from, to int) {
	switch {
	case len(ops) == 1:
		elementwise(&ops[0], from, to, true)
	case len(ops) == 2 && combinesDiffs(ops):
		combineDiffs(&ops[0], &ops[1], from, to)
	default:
		for i := from; i < to; i += fuseBlock {
			block(ops, i, min(i+fuseBlock, to))
		}
	}
}

// block is Part for coordinates that stay in the first-level cache.
func block(ops []device.Op, from, to int) {
	for len(ops) > 0 {
		if combinesDiffs(ops) {
			combineDiffs(&ops[0], &ops[1], from, to)
			ops = ops[2:]
		} else {
			elementwise(&ops[0], from, to, false)
			ops = ops[1:]
		}
	}
}

// elementwise computes a part of one operation. separate says that no other operation shares the
// pass, so that the part may be long.
func elementwise(op *device.Op, from, to int, separate bool) {
	switch op.Kind {
	case device.KindCombine:
		combineRange(op, from, to, separate)
	case device.KindGather:
		copy(numbers(op.Out[0])[from:to], numbers(op.In[0])[from:to])
	case device.KindAddDiff:
		addDiffAll(op, from, to)
	case device.KindAddDiffs:
		addDiffs(op, from, to)
	case device.KindMoveCopy:
		moveAll(op, from, to)
	case device.KindAdamW:
		adamWRange(op, from, to)
	}
}

// Whole computes an operation that is not elementwise.
func Whole(op *device.Op) {
	switch op.Kind {
	case device.KindGather:
		gatherAt(numbers(op.Out[0]), numbers(op.In[0]), coordinates(op.Idx))
	case device.KindAddDiff:
		addDiffAt(op)
	case device.KindScatterAdd:
		addAllParts(op)
	case device.KindMoveCopy:
		moveAt(op)
	case device.KindDot:
		*op.Sum = dot(numbers(op.In[0]), numbers(op.In[1]))
	case device.KindMultiply:
		p := ProductOf(op)
		parts, _ := p.Size()
		p.Part(0, parts)
	}
}

// Within computes the coordinates from, ..., to-1 of a Combine or an AdamW.
func Within(op *device.Op, from, to int) { elementwise(op, from, to, false) }

func numbers(v device.Vector) []float32 { return Data("Do", v) }
