package vec

import "fspda/device"

// maxTargets is how many vectors a diffCombination writes in addition to the combination.
const maxTargets = 2

// CombineDiffs is Combine(dst.V, base...) followed by AddDiffs(start, own, others, dst, to...),
// bit-identical, in one pass if there are not too many operands. It panics if the lengths differ.
func (o Ops) CombineDiffs(dst device.Term, base []device.Term, start device.Term, own device.Vector,
	others []device.Term, to ...device.Term) {
	if len(base) == 0 || max(len(base), len(others)) > maxTerms || len(to) > maxTargets {
		o.Combine(dst.V, base...)
		var all [maxTargets + 2]device.Term // so that few terms allocate nothing
		o.AddDiffs(start, own, others, append(append(all[:0], dst), to...)...)
		return
	}
	v := Data("CombineDiffs", dst.V)
	m := diffCombination{factor: float32(dst.A), own: Data("CombineDiffs", own)}
	CheckLen("CombineDiffs", "own", len(m.own), len(v))
	if start.V != nil {
		m.start, m.scale = Data("CombineDiffs", start.V), float32(start.A)
		CheckLen("CombineDiffs", "start", len(m.start), len(v))
	}
	m.base.set("a vector of base", base, len(v))
	m.others.set("another", others, len(v))
	m.targets.set("a term", to, len(v))
	m.run(v)
}

// set lists terms whose vectors have n numbers.
func (c *combination) set(what string, terms []device.Term, n int) {
	c.terms = len(terms)
	for k, t := range terms {
		c.v[k], c.a[k] = Data("CombineDiffs", t.V), float32(t.A)
		CheckLen("CombineDiffs", what, len(c.v[k]), n)
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
