package cudnn

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"fspda/cuda/driver"
)

// executionPlan is an engine that is ready to execute a graph.
type executionPlan struct {
	engine    Engine
	memory    int // workspace in bytes
	alignment int // divides every address
	operands  int // The number of operands in device memory.
	scalars   []*float32
	handle    Ptr
	node      Node
	nodes     nodes // the descriptors it was made of, and its own
	packs     packs
}

// packs caches the descriptors of the addresses that a plan was executed with, oldest first: steps
// that are not captured use the same addresses again.
type packs struct {
	known map[addresses]Node
	order []addresses
}

// addresses holds the addresses of the operands in device memory, then that of the workspace. Of a
// convolution these are x, w and y.
type addresses [12]driver.Pointer

// maxPacks is the number of packs kept: agents take turns with a plan, each with parameters of its
// own.
const maxPacks = 32

// graph creates the graph of a convolution. The caller must close the nodes, even after an error.
func (c *Conv) graph(alignment int) (*nodes, Node, error) {
	n := &nodes{api: c.h.api, what: convolution{c.shape}}
	g := n.graphOf(c.shape, c.direction, c.of, alignment, c.h.target())
	return n, g, n.err
}

// makePlan makes a plan for an engine.
func (c *Conv) makePlan(e Engine, alignment int) (*executionPlan, error) {
	n, g, err := c.graph(alignment)
	p, err := c.h.planOf(n, g, e, alignment, err)
	if err == nil {
		p.operands = 3
	}
	return p, err
}

// planOf makes a plan of a graph, unless that failed. It closes the nodes where it fails.
func (h *Handle) planOf(n *nodes, g Node, e Engine, alignment int, err error) (*executionPlan, error) {
	on := h.target()
	p := &executionPlan{engine: e, alignment: alignment, handle: on.handle}
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

func (n *nodes) planOf(config Node, on target) Node {
	p := n.create(PlanNode)
	if on.handle != 0 {
		set(n, p, PlanHandle, HandleValue, on.handle)
	}
	set(n, p, PlanConfig, NodeValue, config)
	on.set(n, p, PlanDevice)
	return n.finalize(p)
}

// run enqueues the plan on the stream of the handle.
func (p *executionPlan) run(at addresses) error {
	for i, a := range at[:p.operands+1] {
		if a%driver.Pointer(p.alignment) != 0 {
			return fmt.Errorf("cudnn: %v: operand %d has address %#x, want a multiple of %d",
				p.nodes.what, i, a, p.alignment)
		}
	}
	pack, err := p.pack(at)
	if err != nil {
		return err
	}
	api := p.nodes.api
	return api.check(api.Backend.Execute(p.handle, p.node, pack), "%v by %v", p.nodes.what, p.engine)
}

func (p *executionPlan) pack(at addresses) (Node, error) {
	if d, ok := p.packs.known[at]; ok {
		return d, nil
	}
	n := &nodes{api: p.nodes.api, what: p.nodes.what}
	d := n.create(PackNode)
	where := slices.Clone(at[:p.operands])
	for _, s := range p.scalars {
		where = append(where, driver.Pointer(uintptr(unsafe.Pointer(s))))
	}
	uids := make([]int64, len(where))
	for i := range uids {
		uids[i] = int64(i + 1)
	}
	set(n, d, PackUIDs, Int64Value, uids...)
	set(n, d, PackAddresses, AddressValue, where...)
	set(n, d, PackWorkspace, AddressValue, at[p.operands])
	n.finalize(d)
	if n.err != nil {
		return 0, errors.Join(n.err, n.close())
	}
	return d, p.keep(at, d)
}

// keep stores a pack, and destroys the oldest one if there are too many. Work that was enqueued
// with it has already read its addresses.
func (p *executionPlan) keep(at addresses, d Node) error {
	if p.packs.known == nil {
		p.packs.known = map[addresses]Node{}
	}
	p.packs.known[at] = d
	p.packs.order = append(p.packs.order, at)
	if len(p.packs.order) <= maxPacks {
		return nil
	}
	oldest := p.packs.order[0]
	p.packs.order = p.packs.order[1:]
	old := p.packs.known[oldest]
	delete(p.packs.known, oldest)
	return p.nodes.api.check(p.nodes.api.Backend.Destroy(old), "destroying a pack of addresses of %v",
		p.nodes.what)
}

func (p *executionPlan) close() error {
	if p == nil {
		return nil
	}
	var err error
	for _, d := range p.packs.known {
		err = errors.Join(err, p.nodes.api.check(p.nodes.api.Backend.Destroy(d), "destroying a pack of addresses"))
	}
	p.packs = packs{}
	return errors.Join(err, p.nodes.close())
}
