package kernels

import (
	"slices"

	"fspda/device"
)

// Phases is Lower with the calls in phases: the calls of a phase are independent, and depend only
// on earlier phases. The results of the code are available from phase done on.
func (f Group) Phases(code *device.Code) (phases [][]Call, done int, err error) {
	tasks, err := f.tasks(code)
	if err != nil {
		return nil, 0, err
	}
	p := phasePlanner{}
	var at []int
	for _, t := range tasks {
		at = append(at, p.add(t))
	}
	p.move(tasks, at)
	for _, calls := range p.phases { // calls of many threads first: others go where there is space
		slices.SortStableFunc(calls, func(a, b Call) int { return int(b.Block[0]) - int(a.Block[0]) })
	}
	var results []device.Ref
	for _, r := range code.Results {
		results = append(results, r.Ref)
	}
	return p.phases, p.earliest(results, nil), nil
}

type phasePlanner struct {
	phases [][]Call
	uses   []access
}

// access records that a phase reads or writes an operand.
type access struct {
	of     device.Ref
	phase  int
	writes bool
}

// earliest returns the first phase in which operands can be read and written.
func (p *phasePlanner) earliest(reads, writes []device.Ref) int {
	at := 0
	for _, u := range p.uses {
		if at <= u.phase && (u.of.OverlapsAny(writes) || u.writes && u.of.OverlapsAny(reads)) {
			at = u.phase + 1
		}
	}
	return at
}

// add adds a task to its phase, which it returns.
func (p *phasePlanner) add(t task) (phase int) {
	at := p.earliest(t.reads, t.writes)
	for _, r := range t.reads {
		p.uses = append(p.uses, access{r, at, false})
	}
	for _, r := range t.writes {
		p.uses = append(p.uses, access{r, at, true})
	}
	for len(p.phases) <= at {
		p.phases = append(p.phases, nil)
	}
	p.phases[at] = append(p.phases[at], t.Call)
	return at
}

// move moves sums of squares, which were planned for phases at, to the last phase before their sum
// is needed: products of bytes leave them less space than a head.
func (p *phasePlanner) move(tasks []task, at []int) {
	for i, t := range tasks {
		if t.Call.Kernel.Name != "square_blocks" {
			continue
		}
		last := len(p.phases)
		for k, later := range tasks[i+1:] {
			if slices.ContainsFunc(t.writes, func(r device.Ref) bool { return r.OverlapsAny(later.reads) }) ||
				slices.ContainsFunc(slices.Concat(t.reads, t.writes),
					func(r device.Ref) bool { return r.OverlapsAny(later.writes) }) {
				last = min(last, at[i+1+k]-1)
			}
		}
		if last < len(p.phases) && last > at[i] {
			n := slices.IndexFunc(p.phases[at[i]], func(c Call) bool {
				return c.Kernel == t.Kernel && slices.Equal(c.Args, t.Args)
			})
			p.phases[at[i]] = slices.Delete(p.phases[at[i]], n, n+1)
			p.phases[last] = append(p.phases[last], t.Call)
		}
	}
}
