package dist

// independent activates each edge independently with the same probability.
type independent struct {
	edgeSampler
	spec string
	p    float64
	gaps *gapSampler // nil if p is 1 or there is no edge
}

func parseIndependent(p parsedSpec, l edgeSampler) (Process, error) {
	if p.name == "bernoulli" {
		prob, err := p.probability()
		if err != nil {
			return nil, err
		}
		return newIndependent(l, withFloat(p.name, prob), prob), nil
	}
	k, err := p.float()
	n := float64(len(l.g.Edges))
	switch {
	case err != nil:
		return nil, err
	case !(k > 0):
		return nil, p.bad("%v edges on average; it must be more than 0", k)
	case n == 0:
		return newIndependent(l, withFloat(p.name, k), 1), nil
	case k > n:
		return nil, p.bad("%v edges on average, but the graph %s has %v", k, l.g, n)
	}
	return newIndependent(l, withFloat(p.name, k), k/n), nil
}

func newIndependent(l edgeSampler, spec string, prob float64) independent {
	p := independent{edgeSampler: l, spec: spec, p: prob}
	if prob > 0 && prob < 1 && len(l.g.Edges) > 0 {
		p.gaps = newGaps(prob, len(l.g.Edges))
	}
	return p
}

func (p independent) String() string        { return p.spec }
func (p independent) Rate(edge int) float64 { return p.p }

func (p independent) Active(dst []Event, t int) []Event {
	if p.gaps == nil {
		return full{p.g}.Active(dst, t)
	}
	dst = dst[:0]
	s := p.at(t)
	for k := p.gaps.next(&s); k < len(p.g.Edges); k += 1 + p.gaps.next(&s) {
		dst = append(dst, p.g.event(k))
	}
	return dst
}

// exactCount activates k different edges, uniform.
type exactCount struct {
	edgeSampler
	k int
}

func (p exactCount) String() string        { return withInt("k-edges-exact", p.k) }
func (p exactCount) Rate(edge int) float64 { return float64(p.k) / float64(len(p.g.Edges)) }

// Active visits the edges once and takes each with probability (number still missing)/(number
// left): Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S. The result is ascending and
// needs no scratch.
func (p exactCount) Active(dst []Event, t int) []Event {
	dst = dst[:0]
	s := p.at(t)
	n := len(p.g.Edges)
	missing := min(p.k, n)
	for k := 0; missing > 0; k++ {
		if s.IntN(n-k) < missing {
			dst = append(dst, p.g.event(k))
			missing--
		}
	}
	return dst
}
