package vec

import "fspda/device"

// diffBlock is how many differences are held at a time if there are more than two terms: 1 KB.
const diffBlock = 256

// gatherAtGo writes src[at[j]] to dst[j].
func gatherAtGo(dst, src []float32, at []uint32) {
	dst = dst[:len(at)]
	for j, i := range at {
		dst[j] = src[i]
	}
}

// addDiffAll computes a part of an AddDiff of all coordinates.
func addDiffAll(op *device.Op, from, to int) {
	p, q := numbers(op.In[0])[from:to], numbers(op.In[1])[from:to]
	v := func(k int) []float32 { return numbers(op.To[k].V)[from:to] }
	a := func(k int) float32 { return float32(op.To[k].A) }
	switch len(op.To) {
	case 0:
	case 1:
		addDiffAll1(p, q, a(0), v(0))
	case 2:
		addDiffAll2(p, q, a(0), v(0), a(1), v(1))
	default:
		eachDiff(p, q, func(j int, d []float32) {
			for k := range op.To {
				plusTimes(v(k)[j:j+len(d)], a(k), d)
			}
		})
	}
}

// addDiffAt computes an AddDiff of selected coordinates.
func addDiffAt(op *device.Op) {
	p, q, at := numbers(op.In[0]), numbers(op.In[1]), coordinates(op.Idx)
	v := func(k int) []float32 { return numbers(op.To[k].V) }
	a := func(k int) float32 { return float32(op.To[k].A) }
	switch {
	case len(op.To) == 0 || len(p) == 0:
	case len(op.To) == 1:
		addDiffAt1(p, q, at, a(0), v(0))
	case len(op.To) == 2:
		addDiffAt2(p, q, at, a(0), v(0), a(1), v(1))
	default:
		eachDiff(p, q, func(j int, d []float32) {
			for k := range op.To {
				scatterAdd(v(k), at[j:], len(d), d, a(k))
			}
		})
	}
}

// eachDiff passes blocks of p - q, from number j on, to add. It computes all differences of a block
// before add changes a vector, since p may be one that is added to.
func eachDiff(p, q []float32, add func(j int, d []float32)) {
	var block [diffBlock]float32
	for j := 0; j < len(p); j += diffBlock {
		d := block[:min(diffBlock, len(p)-j)]
		for l := range d {
			d[l] = p[j+l] - q[j+l]
		}
		add(j, d)
	}
}

// addDiffAll1Go: v += a·(p - q).
func addDiffAll1Go(p, q []float32, a float32, v []float32) {
	q, v = q[:len(p)], v[:len(p)]
	for j := range p {
		v[j] += float32(a * (p[j] - q[j]))
	}
}

// addDiffAll2Go: v += a·(p - q), w += b·(p - q).
func addDiffAll2Go(p, q []float32, a float32, v []float32, b float32, w []float32) {
	q, v, w = q[:len(p)], v[:len(p)], w[:len(p)]
	for j := range p {
		d := p[j] - q[j]
		v[j] += float32(a * d)
		w[j] += float32(b * d)
	}
}

// addDiffAt1Go: v[at] += a·(p - q).
func addDiffAt1Go(p, q []float32, at []uint32, a float32, v []float32) {
	p, q = p[:len(at)], q[:len(at)]
	for j, i := range at {
		v[i] += float32(a * (p[j] - q[j]))
	}
}

// addDiffAt2Go: v[at] += a·(p - q), w[at] += b·(p - q).
func addDiffAt2Go(p, q []float32, at []uint32, a float32, v []float32, b float32, w []float32) {
	p, q, w = p[:len(at)], q[:len(at)], w[:len(v)]
	for j, i := range at {
		d := p[j] - q[j]
		v[i] += float32(a * d)
		w[i] += float32(b * d)
	}
}
