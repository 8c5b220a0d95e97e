package cudnn

import (
	"errors"
	"fmt"

	"fspda/cuda/driver"
)

// executionPlan is an engine made ready for a graph.
type executionPlan struct {
	engine  Engine
	memory  int // bytes that it works in
	aligned int // every address is a multiple of it
	handle  Raw
	node    Node
	nodes   nodes // what it was made of, and itself
	packs   packs
}

// packs are the addresses that a plan was executed with, the newest last: a step that is not
// captured comes back to them, and makes no new ones.
type packs struct {
	known map[addresses]Node
	order []addresses
}

// addresses is where x, w, y and the workspace lie.
type addresses [4]driver.Pointer

// mostPacks is how many packs are kept: agents take turns with a plan, each with parameters of its
// own.
const mostPacks = 32

// graph makes the graph of a convolution. The nodes are to be closed also where it fails.
func (c *Conv) graph(aligned int) (*nodes, Node, error) {
	n := &nodes{api: c.h.api, what: c.shape}
	g := n.graphOf(c.shape, c.direction, c.of, aligned, c.h.place())
	return n, g, n.err
}

// plan makes a plan of an engine.
func (c *Conv) plan(e Engine, aligned int) (*executionPlan, error) {
	on := c.h.place()
	n, g, err := c.graph(aligned)
	p := &executionPlan{engine: e, aligned: aligned, handle: on.handle}
	if err == nil {
		p.node = n.planOf(n.config(g, e, on), on)
		p.memory = int(getOne[int64](n, p.node, PlanWorkspace, Int64Value))
		err = n.err
	}
	p.nodes = *n
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cudnn: %v: %w", e, err), p.close())
	}
	return p, nil
}

func (n *nodes) planOf(config Node, on place) Node {
	p := n.create(PlanNode)
	if on.handle != 0 {
		set(n, p, PlanHandle, HandleValue, on.handle)
	}
	set(n, p, PlanConfig, NodeValue, config)
	on.on(n, p, PlanDevice)
	return n.finalize(p)
}

// run sends the plan to the stream of the handle.
func (p *executionPlan) run(at addresses) error {
	for i, a := range at {
		if a%driver.Pointer(p.aligned) != 0 {
			return fmt.Errorf("cudnn: a convolution of %v: operand %d lies at %#x, expected a multiple of %d",
				p.nodes.what, i, a, p.aligned)
		}
	}
	pack, err := p.pack(at)
	if err != nil {
		return err
	}
	api := p.nodes.api
	return api.check(api.Backend.Execute(p.handle, p.node, pack), "a convolution of %v by %v", p.nodes.what, p.engine)
}

// pack is the descriptor of addresses.
func (p *executionPlan) pack(at addresses) (Node, error) {
	if d, ok := p.packs.known[at]; ok {
		return d, nil
	}
	n := &nodes{api: p.nodes.api, what: p.nodes.what}
	d := n.create(PackNode)
	set(n, d, PackNumbers, Int64Value, numberX, numberW, numberY)
	set(n, d, PackAddresses, AddressValue, at[:3]...)
	set(n, d, PackWorkspace, AddressValue, at[3])
	n.finalize(d)
	if n.err != nil {
		return 0, errors.Join(n.err, n.close())
	}
	return d, p.keep(at, d)
}

// keep keeps a pack, and gives the oldest back where there are too many: what was sent with it has
// been told its addresses.
func (p *executionPlan) keep(at addresses, d Node) error {
	if p.packs.known == nil {
		p.packs.known = map[addresses]Node{}
	}
	p.packs.known[at] = d
	p.packs.order = append(p.packs.order, at)
	if len(p.packs.order) <= mostPacks {
		return nil
	}
	oldest := p.packs.order[0]
	p.packs.order = p.packs.order[1:]
	gone := p.packs.known[oldest]
	delete(p.packs.known, oldest)
	return p.nodes.api.check(p.nodes.api.Backend.Destroy(gone), "giving back addresses of a convolution of %v",
		p.nodes.what)
}

// close gives back all that the library keeps of it.
func (p *executionPlan) close() error {
	if p == nil {
		return nil
	}
	var err error
	for _, d := range p.packs.known {
		err = errors.Join(err, p.nodes.api.check(p.nodes.api.Backend.Destroy(d), "giving back addresses"))
	}
	p.packs = packs{}
	return errors.Join(err, p.nodes.close())
}
