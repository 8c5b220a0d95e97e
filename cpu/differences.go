package cpu

import "fspda/device"

// AddDiffs computes V += A·S for each term of to, with S = start + Σ Aₖ·(own - Vₖ) over others, all rounded one by one to float32 from left to
// right. A start without vector is zero. It panics if the lengths differ.
func (*Device) AddDiffs(start device.Term, own device.Vector, others []device.Term, to ...device.Term) {
	p := data("AddDiffs", own)
	if start.V != nil {
		checkLen("AddDiffs", "start", len(data("AddDiffs", start.V)), len(p))
	}
	for _, t := range others {
		checkLen("AddDiffs", "another", len(data("AddDiffs", t.V)), len(p))
	}
	for _, t := range to {
		checkLen("AddDiffs", "a term", len(data("AddDiffs", t.V)), len(p))
	}
	var block [combineBlock]float32
	for i := 0; i < len(p); i += combineBlock {
		s := block[:min(combineBlock, len(p)-i)]
		if start.V == nil {
			clear(s)
		} else {
			c := combination{terms: 1}
			c.v[0], c.a[0] = start.V.(*Vector).Data[i:i+len(s)], float32(start.A)
			combine(s, &c, false)
		}
		sumDiffs(s, p[i:i+len(s)], others, i)
		for _, t := range to {
			plusTimes(t.V.(*Vector).Data[i:i+len(s)], float32(t.A), s)
		}
	}
}

// sumDiffs adds the differences to s. It has the others' numbers from i on.
func sumDiffs(s, own []float32, others []device.Term, i int) {
	for len(others) > 0 {
		var c combination
		for ; c.terms < min(maxTerms, len(others)); c.terms++ {
			c.v[c.terms], c.a[c.terms] = others[c.terms].V.(*Vector).Data[i:i+len(s)], float32(others[c.terms].A)
		}
		addDiffs(s, own, &c)
		others = others[c.terms:]
	}
}

// plusTimes adds a·x to v.
func plusTimes(v []float32, a float32, x []float32) {
	c := combination{terms: 2}
	c.v[0], c.a[0] = v, 1
	c.v[1], c.a[1] = x, a
	combine(v, &c, false)
}

// addDiffsGo: sum += Σ a[k]·(own - v[k]).
func addDiffsGo(sum, own []float32, c *combination) {
	own = own[:len(sum)]
	for k, v := range c.v[:c.terms] {
		a, v := c.a[k], v[:len(sum)]
		for i := range sum {
			sum[i] += float32(a * (own[i] - v[i]))
		}
	}
}
