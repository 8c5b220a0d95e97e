package vec

import "fspda/device"

// MoveCopy computes q[j] = v[idx[j]] + w[idx[j]] - copy[idx[j]], without w if it is nil, and then
// copy[idx[j]] += q[j], rounded one by one to float32 from left to right. A nil idx stands for all
// coordinates. The vectors must be distinct. It panics if q does not have the length of idx, if the
// others differ in length, or if a coordinate lies beyond them.
func (o Ops) MoveCopy(q, copy, v, w device.Vector, idx device.Index) {
	moves, c, x := Data("MoveCopy", q), Data("MoveCopy", copy), Data("MoveCopy", v)
	CheckLen("MoveCopy", "v", len(x), len(c))
	var y []float32
	if w != nil {
		y = Data("MoveCopy", w)
		CheckLen("MoveCopy", "w", len(y), len(c))
	}
	at, k := indexOf("MoveCopy", idx)
	if at == nil {
		k = len(c)
	}
	CheckLen("MoveCopy", "q", len(moves), k)
	switch {
	case at == nil:
		moveAll(o, q, copy, v, w)
	case w == nil:
		moveAt1(moves, c, x, at.inside("MoveCopy", len(c)))
	default:
		moveAt2(moves, c, x, y, at.inside("MoveCopy", len(c)))
	}
}

func moveAll(o Ops, q, copy, v, w device.Vector) {
	terms := []device.Term{{A: 1, V: v}, {A: 1, V: w}, {A: -1, V: copy}}
	if w == nil {
		terms = append(terms[:1], terms[2])
	}
	o.Combine(q, terms...)
	o.Combine(copy, device.Term{A: 1, V: copy}, device.Term{A: 1, V: q})
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
