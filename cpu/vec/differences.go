package vec

import "fspda/device"

// zeros is the start of sums without one. It is read-only.
var zeros [vecBlock]float32

func addDiffs(op *device.Op, from, to int) {
	p := numbers(op.In[0])
	var sum [vecBlock]float32
	for i := from; i < to; i += vecBlock {
		n := min(vecBlock, to-i)
		s := differences{start: zeros[:n], scale: 1, own: p[i : i+n]}
		if op.Start.V != nil {
			s.start, s.scale = numbers(op.Start.V)[i:i+n], float32(op.Start.A)
		}
		s.addTo(op.To, op.Terms, i, sum[:n])
	}
}

// differences is S = scale·start + Σ a[k]·(own - v[k]) over the others.
type differences struct {
	start, own []float32
	scale      float32
	others     combination
}

// addTo adds multiples of a block of S, which begins at number i, to the terms. If there are more
// others than one pass handles, the first ones are added up before; and all of S is added up before
// if there are not one or two terms.
func (s differences) addTo(to, others []device.Term, i int, sum []float32) {
	for ; len(others) > maxTerms; others = others[maxTerms:] {
		s.setOthers(others[:maxTerms], i)
		sumDiffs(sum, &s)
		s.start, s.scale = sum, 1
	}
	s.setOthers(others, i)
	at := func(k int) []float32 { return numbers(to[k].V)[i : i+len(s.own)] }
	switch len(to) {
	case 1:
		addDiffs1(at(0), float32(to[0].A), &s)
	case 2:
		addDiffs2(at(0), float32(to[0].A), at(1), float32(to[1].A), &s)
	default:
		sumDiffs(sum, &s)
		for k, t := range to {
			plusTimes(at(k), float32(t.A), sum)
		}
	}
}

// setOthers sets the others' numbers from i on.
func (s *differences) setOthers(others []device.Term, i int) {
	c := &s.others
	c.terms = len(others)
	for k, t := range others {
		c.v[k], c.a[k] = numbers(t.V)[i:i+len(s.own)], float32(t.A)
	}
}

// plusTimes adds a·x to v.
func plusTimes(v []float32, a float32, x []float32) {
	c := combination{terms: 2}
	c.v[0], c.a[0] = v, 1
	c.v[1], c.a[1] = x, a
	combine(v, &c, false)
}

// at returns S at number i.
func (s *differences) at(i int) float32 {
	sum := s.scale * s.start[i]
	for k, v := range s.others.v[:s.others.terms] {
		sum += float32(s.others.a[k] * (s.own[i] - v[i]))
	}
	return sum
}

// sumDiffsGo: sum = S.
func sumDiffsGo(sum []float32, s *differences) {
	for i := range sum {
		sum[i] = s.at(i)
	}
}

// addDiffs1Go: x += b·S.
func addDiffs1Go(x []float32, b float32, s *differences) {
	for i := range x {
		x[i] += float32(b * s.at(i))
	}
}

// addDiffs2Go: x += b·S, then y += c·S.
func addDiffs2Go(x []float32, b float32, y []float32, c float32, s *differences) {
	for i := range x {
		sum := s.at(i)
		x[i] += float32(b * sum)
		y[i] += float32(c * sum)
	}
}
