package kernels

import "fspda/device"

// Phases is Lower with the calls in phases: the calls of a phase are independent, and depend only
// on earlier phases. The results of the code are available from phase done on.
func (f Fleet) Phases(code *device.Code) (phases [][]Call, done int, err error) {
	tasks, err := f.tasks(code)
	if err != nil {
		return nil, 0, err
	}
	p := planner{}
	for _, t := range tasks {
		p.put(t)
	}
	var results []device.Ref
	for _, r := range code.Results {
		results = append(results, r.Ref)
	}
	return p.phases, p.earliest(results, nil), nil
}

// phasePlanner assigns calls to phases.
type planner struct {
	phases [][]Call
	uses   []use
}

// access records that a phase reads or writes an operand.
type use struct {
	of     device.Ref
	phase  int
	writes bool
}

// earliest returns the first phase in which operands can be read and written.
func (p *planner) earliest(reads, writes []device.Ref) int {
	at := 0
	for _, u := range p.uses {
		if at <= u.phase && (touches(u.of, writes) || u.writes && touches(u.of, reads)) {
			at = u.phase + 1
		}
	}
	return at
}

// add adds a task to its phase.
func (p *planner) put(t task) {
	at := p.earliest(t.reads, t.writes)
	for _, r := range t.reads {
		p.uses = append(p.uses, use{r, at, false})
	}
	for _, r := range t.writes {
		p.uses = append(p.uses, use{r, at, true})
	}
	for len(p.phases) <= at {
		p.phases = append(p.phases, nil)
	}
	p.phases[at] = append(p.phases[at], t.Call)
}

// overlaps reports whether an operand shares numbers with others.
func touches(r device.Ref, others []device.Ref) bool {
	for _, o := range others {
		if r.Space == o.Space && r.Off < o.Off+o.Len && o.Off < r.Off+r.Len {
			return true
		}
	}
	return false
}
