package vec

import (
	"slices"

	"fspda/device"
)

// maxTargets is how many vectors a diffCombination writes in addition to the combination.
const maxTargets = 2

// combinesDiffs reports whether [combineDiffs] computes the first two operations: a Combine, and an
// AddDiffs that adds to its result, does not read it otherwise, and has not too many operands.
func combinesDiffs(ops []device.Op) bool {
	if len(ops) < 2 || ops[0].Kind != device.KindCombine || ops[1].Kind != device.KindAddDiffs {
		return false
	}
	base, diffs, dst := ops[0].Terms, &ops[1], ops[0].Out[0]
	if len(base) == 0 || max(len(base), len(diffs.Terms)) > maxTerms || len(diffs.To) == 0 ||
		len(diffs.To) > 1+maxTargets || diffs.To[0].V != dst {
		return false
	}
	is := func(t device.Term) bool { return t.V == dst }
	return diffs.In[0] != dst && diffs.Start.V != dst && !slices.ContainsFunc(diffs.Terms, is) &&
		!slices.ContainsFunc(diffs.To[1:], is)
}

// combineDiffs computes a part of a Combine and an AddDiffs for which combinesDiffs holds. Each
// number of the result is written once.
func combineDiffs(base, diffs *device.Op, from, to int) {
	m := diffCombination{factor: float32(diffs.To[0].A), own: numbers(diffs.In[0])[from:to]}
	if diffs.Start.V != nil {
		m.start, m.scale = numbers(diffs.Start.V)[from:to], float32(diffs.Start.A)
	}
	m.base.set(base.Terms, from, to)
	m.others.set(diffs.Terms, from, to)
	m.targets.set(diffs.To[1:], from, to)
	m.run(numbers(base.Out[0])[from:to])
}

// set lists terms, and the numbers from, ..., to-1 of their vectors.
func (c *combination) set(terms []device.Term, from, to int) {
	c.terms = len(terms)
	for k, t := range terms {
		c.v[k], c.a[k] = numbers(t.V)[from:to], float32(t.A)
	}
}

// diffCombination is a combination to which factor·S is added, and target vectors v to each of
// which a·S is added, with S = scale·start + Σ a·(own - v) over the others. Without start S begins
// with zero.
type diffCombination struct {
	base, others, targets combination
	start, own            []float32
	scale, factor         float32
}

// runGo writes base + factor·S to d and v + a·S to each target v. All products and sums are rounded
// one by one.
func (m *diffCombination) runGo(d []float32) {
	for i := range d {
		total := m.base.a[0] * m.base.v[0][i]
		for k := 1; k < m.base.terms; k++ {
			total += float32(m.base.a[k] * m.base.v[k][i])
		}
		sum := float32(0)
		if m.start != nil {
			sum = m.scale * m.start[i]
		}
		for k := range m.others.terms {
			sum += float32(m.others.a[k] * (m.own[i] - m.others.v[k][i]))
		}
		d[i] = total + float32(m.factor*sum)
		for k := range m.targets.terms {
			m.targets.v[k][i] += float32(m.targets.a[k] * sum)
		}
	}
}
