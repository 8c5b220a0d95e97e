package kernels

import "fspda/device"

// Phases is Lower with the calls in phases: those of one do not depend on each other, and each
// comes behind what it depends on. From phase done on the results of the code are there.
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

// planner puts calls in phases.
type planner struct {
	phases [][]Call
	uses   []use
}

// use is that a call of a phase reads or writes something.
type use struct {
	of     device.Ref
	phase  int
	writes bool
}

// earliest is the first phase for what reads and writes operands.
func (p *planner) earliest(reads, writes []device.Ref) int {
	at := 0
	for _, u := range p.uses {
		if at <= u.phase && (touches(u.of, writes) || u.writes && touches(u.of, reads)) {
			at = u.phase + 1
		}
	}
	return at
}

// put puts a task in its phase.
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

// touches tells whether an operand shares numbers with others.
func touches(r device.Ref, others []device.Ref) bool {
	for _, o := range others {
		if r.Space == o.Space && r.Off < o.Off+o.Len && o.Off < r.Off+r.Len {
			return true
		}
	}
	return false
}
