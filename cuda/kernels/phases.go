package kernels

import "fspda/device"

// Phases is Lower with the calls in phases: those of one do not depend on each other, and each comes behind what it depends on. From phase done on the
// results of the code are there.
func (f Fleet) Phases(code *device.Code) (phases [][]Call, done int, err error) {
	p := planner{}
	for i := range code.Calls {
		c := &code.Calls[i]
		made, err := f.lowerCall(c)
		if err != nil {
			return nil, 0, err
		}
		p.place(c, made)
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

// scratch stands for Fleet.Scratch.
var scratch = device.Ref{Space: ^device.Space(0), Len: 1}

// place puts what became of a call of the code in phases. Of two calls, the first writes what the second sums up to the first result.
func (p *planner) place(c *device.Call, made []Call) {
	switch len(made) {
	case 1:
		p.put(made[0], c.In, c.Out)
	case 2:
		p.put(made[0], c.In, append([]device.Ref{scratch}, c.Out[1:]...))
		p.put(made[1], []device.Ref{scratch}, c.Out[:1])
	default:
		panic("kernels: a call of a fleet became none or more than two")
	}
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

func (p *planner) put(call Call, reads, writes []device.Ref) {
	at := p.earliest(reads, writes)
	for _, r := range reads {
		p.uses = append(p.uses, use{r, at, false})
	}
	for _, r := range writes {
		p.uses = append(p.uses, use{r, at, true})
	}
	for len(p.phases) <= at {
		p.phases = append(p.phases, nil)
	}
	p.phases[at] = append(p.phases[at], call)
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
