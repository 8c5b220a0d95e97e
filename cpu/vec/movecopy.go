package vec

import "fspda/device"

// moveAt moves a copy at selected coordinates.
func moveAt(op *device.Op) {
	q, c, v, at := numbers(op.Out[0]), numbers(op.Out[1]), numbers(op.In[0]), coordinates(op.Idx)
	if op.In[1] == nil {
		moveAt1(q, c, v, at)
	} else {
		moveAt2(q, c, v, numbers(op.In[1]), at)
	}
}

// moveAll computes a part of a MoveCopy of all coordinates.
func moveAll(op *device.Op, from, to int) {
	q, c := numbers(op.Out[0])[from:to], numbers(op.Out[1])[from:to]
	sum := combination{}.plus(1, numbers(op.In[0])[from:to])
	if op.In[1] != nil {
		sum = sum.plus(1, numbers(op.In[1])[from:to])
	}
	sum = sum.plus(-1, c)
	combine(q, &sum, false)
	plusTimes(c, 1, q)
}

// moveAt1: q = v[at] - c[at], c[at] += q.
func moveAt1(q, c, v []float32, at []uint32) {
	q, v = q[:len(at)], v[:len(c)]
	for j, i := range at {
		q[j] = v[i] - c[i]
		c[i] += q[j]
	}
}

// moveAt2: q = v[at] + w[at] - c[at], c[at] += q.
func moveAt2(q, c, v, w []float32, at []uint32) {
	q, v, w = q[:len(at)], v[:len(c)], w[:len(c)]
	for j, i := range at {
		q[j] = v[i] + w[i] - c[i]
		c[i] += q[j]
	}
}
