package cuda

import (
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/cuda/megakernel"
)

// megakernelFLOPs is how many operations one agent's gradient in a megakernel takes at most.
const megakernelFLOPs = 3e8

// megakernelPlan is the kernels of a graphKey, by phases of a megakernel. Without phases the
// megakernel does not accept them.
type megakernelPlan struct {
	phases       [][]kernels.Call
	resultsPhase int // the phase in which the results are complete
	steps, args  int
}

// appendToMegakernel appends the kernels of a launch to the megakernel. It is false where that does
// not accept them: batches in slots need two streams, and 16 bits have kernels of their own.
func (g *group) appendToMegakernel(ex *executor.Executor, members []*request) (appended bool, err error) {
	m := g.dev.mega
	if m == nil || g.half != nil || members[0].dataset == nil || float64(g.code.FLOPs) > megakernelFLOPs {
		return false, nil
	}
	if g.lacksMemory() { // collected kernels may still use memory that is free by now
		if err := m.Flush(); err != nil {
			return false, err
		}
		if err := g.allocMemory(ex); err != nil {
			return false, err
		}
	}
	s := inputLayout{g.code.Batch, len(members)}
	p, err := g.planFor(g.keyOf(members), s)
	if err != nil || p.phases == nil {
		return false, err
	}
	limit := len(p.phases) + 1
	if g.mem.lastLaunch == m.Launches {
		limit += g.mem.nextPhase
	}
	if fits, err := m.Reserve(limit, p.steps, p.args, s.bytes()); !fits || err != nil {
		return false, err
	}
	data, at := m.Commands.Data(s.bytes())
	g.writeInputs(data, s, members)
	slot, err := g.acquireStaging(ex)
	if err != nil {
		return false, err
	}
	g.appendSteps(m, p, at, slot, len(members))
	slot.unread = len(members)
	for i, r := range members {
		r.staging, r.index = slot, i
	}
	return true, nil
}

// appendSteps appends the phases of a plan, after the group's earlier phases in the same launch.
func (g *group) appendSteps(m *megakernel.Megakernel, p *megakernelPlan, inputs kernels.Address, slot *stagingSlot,
	members int) {
	at := m.Phase
	if g.mem.lastLaunch == m.Launches {
		at = max(at, g.mem.nextPhase)
	}
	for i, calls := range p.phases {
		for _, c := range calls {
			m.Commands.AddWithData(at+i, c, inputs)
		}
	}
	m.EndAt(at + len(p.phases))
	g.mem.lastLaunch, g.mem.nextPhase = m.Launches, at+len(p.phases)
	if g.results.bytes() > 0 { // nothing on the GPU reads the copied results
		m.Commands.Add(at+p.resultsPhase, g.collectResults(slot.results.Address(), members))
		g.mem.nextPhase = max(g.mem.nextPhase, at+p.resultsPhase+1)
	}
}

// planFor returns the plan of a key, whose inputs are relative to the data of the command list.
func (g *group) planFor(k graphKey, s inputLayout) (*megakernelPlan, error) {
	if p := g.mem.plans[k]; p != nil {
		return p, nil
	}
	if len(g.mem.plans) >= executor.MaxGraphs {
		clear(g.mem.plans)
	}
	phases, done, err := g.kernelGroup(k, kernels.DataBase, s).Phases(g.code)
	if err != nil {
		return nil, err
	}
	collected := g.collectResults(0, s.members)
	p := &megakernelPlan{phases: phases, resultsPhase: done, steps: 1, args: len(collected.Args)}
	for _, calls := range phases {
		for _, c := range calls {
			if !c.Listable() {
				p.phases = nil
			}
			p.steps, p.args = p.steps+1, p.args+len(c.Args)
		}
	}
	g.mem.plans[k] = p
	return p, nil
}
