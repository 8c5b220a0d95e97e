package cuda

import (
	"math"
	"runtime"
	"sync"
	"unsafe"
	"weak"

	"fspda/cuda/compiler"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
)

// maxMembers is how many agents share a launch.
const maxMembers = 16

// A gradient is computed in a batch group where its arena has at most maxGroupArena numbers and it
// takes at most maxGroupFLOPs operations: larger ones fill a GPU. The choice depends on the code
// alone, since the kernels of a group round differently from NVIDIA's libraries.
const (
	maxGroupArena = 2 << 20
	maxGroupFLOPs = 1e9
)

// groups is the batch groups of a device, by their code.
type groups struct {
	mu  sync.Mutex
	all map[*device.Code]weak.Pointer[group]
}

// group computes the gradients of a small network for several agents at once, in as many launches
// as one gradient takes. Requests that come while the GPU is busy share the next launch. Results
// are bit-identical however requests are grouped.
type group struct {
	dev          *Device
	code         *device.Code
	results      resultRange
	arenaStride  int // numbers from one member's arena to the next
	layout       inputLayout
	mem          *groupMemory
	half         *kernels.GroupHalf // the group's 16-bit arithmetic; nil: float32
	acceptsBytes bool               // it has kernels for examples as bytes
	freeRequests sync.Pool          // holds *request
}

// groupMemory is a batch group's device memory and graphs. Only the executor may touch it.
type groupMemory struct {
	ex                              *executor.Executor
	inputs, arena, results, scratch executor.Block
	graphs                          executor.GraphCache[graphKey]
	freeSlots                       []*stagingSlot // no request waits for these
	plans                           map[graphKey]*megakernelPlan
	lastLaunch                      uint64 // the last megakernel launch of the group
	// the phase of that launch from which on the arena is free
	nextPhase int
}

// stagingSlot is the pinned memory of a launch: its inputs and its results. It is used again when
// the GPU is done with it.
type stagingSlot struct {
	inputs, results *executor.Buffer
	unread          int // members that have not taken their results
}

// graphKey is everything that a captured launch depends on.
type graphKey struct {
	members      int
	dataset      kernels.Address // 0: each member's examples are numbers
	scale, shift uint32          // float32 bits; a byte b of the dataset is the number b·scale + shift
}

// of returns the group of a code, or nil where gradients of the code are computed alone.
func (gs *groups) of(d *Device, code *device.Code) *group {
	half, ok := d.groupable(code)
	if !ok {
		return nil
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if there := gs.all[code].Value(); there != nil {
		return there
	}
	for c, old := range gs.all {
		if old.Value() == nil {
			delete(gs.all, c)
		}
	}
	made := &group{dev: d, code: code, results: rangeOf(code.Results), arenaStride: compiler.Align(4*code.Arena) / 4,
		layout: inputLayout{code.Batch, maxMembers}, half: half, acceptsBytes: groupCanRun(code, &kernels.ByteInputs{}),
		mem: &groupMemory{ex: d.exec, graphs: executor.GraphCache[graphKey]{}, plans: map[graphKey]*megakernelPlan{}}}
	runtime.AddCleanup(made, (*groupMemory).discard, made.mem)
	if gs.all == nil {
		gs.all = map[*device.Code]weak.Pointer[group]{}
	}
	gs.all[code] = weak.Make(made)
	return made
}

// groupable reports whether gradients of code are computed in a group, and its arithmetic in 16
// bits.
func (d *Device) groupable(code *device.Code) (half *kernels.GroupHalf, ok bool) {
	if d.noGroups || code.Labels > 1 || !code.Gradient || code.Buffers > 0 || code.Batch == 0 || code.Features == 0 ||
		code.Arena > maxGroupArena || code.FLOPs > maxGroupFLOPs {
		return nil, false
	}
	if (inputLayout{code.Batch, maxMembers}).bytes() > executor.ChunkBytes || !groupCanRun(code, nil) {
		return nil, false
	}
	return d.groupHalf(code)
}

// groupCanRun reports whether a group has kernels for code, with examples as numbers or as bytes.
func groupCanRun(code *device.Code, bytes *kernels.ByteInputs) bool {
	const some = 256 // any address
	_, err := kernels.Group{Agents: 1, Params: some, Grads: some, Arena: some, Arenas: some, Inputs: some, Bytes: bytes,
		Labels: some, Scratch: some, Bad: some}.Lower(code)
	return err == nil
}

// discard gives the memory up. It is for a finaliser.
func (m *groupMemory) discard() {
	m.graphs.Discard(m.ex)
	for _, b := range []executor.Block{m.inputs, m.arena, m.results, m.scratch} {
		m.ex.Discard(b)
	}
	for _, s := range m.freeSlots {
		m.ex.PutBuffer(s.inputs)
		m.ex.PutBuffer(s.results)
	}
}

// inputLayout is the layout of a launch's inputs: five lists of addresses, the rows and labels of
// all batches, and a counter of bad labels. Its methods return offsets in bytes.
type inputLayout struct{ batch, members int }

func (s inputLayout) params() int  { return 0 }
func (s inputLayout) grads() int   { return 8 * s.members }
func (s inputLayout) inputs() int  { return 16 * s.members }
func (s inputLayout) arenas() int  { return 24 * s.members }
func (s inputLayout) scalers() int { return 32 * s.members }
func (s inputLayout) rows() int    { return 40 * s.members }
func (s inputLayout) labels() int  { return s.rows() + 4*s.members*s.batch }
func (s inputLayout) counter() int { return s.labels() + 4*s.members*s.batch }
func (s inputLayout) bytes() int   { return s.counter() + 4 }

// resultBytes returns the bytes that a launch copies back: the states of their
// loss scales, if any, and their results.
func (g *group) resultBytes(members int) int { return g.scalerBytes() + members*g.results.bytes() }

// scalerBytes returns the bytes of the loss scales' states, which come first.
func (g *group) scalerBytes() int {
	if g.scaling() == nil {
		return 0
	}
	return maxMembers * kernels.ScalerBytes
}

func (g *group) scaling() *kernels.Scaling {
	if g.half == nil {
		return nil
	}
	return g.half.Scaling
}

// request is one agent's gradient, which a launch computes.
type request struct {
	executor.Op
	requestBatch
	group        *group
	program      *Program // the program that started it
	params, grad kernels.Address
	lossScale    *lossScale // the loss scale of the gradient; nil without loss scaling

	staging *stagingSlot // the staging of its launch
	index   int          // its place among the members of the launch
	results []float32
	out     []float64
	err     error

	done   chan struct{} // has capacity one
	onDone func()        // the method finish, bound once
	wait   func() error
}

// requestBatch is the batch of a request: rows of a data set, or numbers in a slot of the program.
type requestBatch struct {
	labels []float32

	dataset              *dataset // nil: the batch is in slot
	byteScale, byteShift float32  // a byte b of the dataset is the number b·byteScale + byteShift
	rows                 []int32

	slot     *inputSlot
	channels int
	input    kernels.Address
}

// BatchesWith reports whether two requests may share a launch.
func (req *request) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*request)
	return ok && x.group == req.group && x.dataset == req.dataset &&
		math.Float32bits(x.byteScale) == math.Float32bits(req.byteScale) &&
		math.Float32bits(x.byteShift) == math.Float32bits(req.byteShift)
}

func (req *request) LevelStride() int { return executor.LevelsPerIteration }

// startInGroup queues a request.
func (p *Program) startInGroup(v vectors, b device.Batch, out []float64) (wait func() error, err error) {
	req := p.group.newRequest()
	req.program, req.out = p, out
	req.params, req.grad, req.lossScale = v.params.address(), v.grad.address(), v.scale
	v.params.grouped.Store(true)
	req.Reads(&v.params.dep)
	req.Writes(&v.grad.dep)
	if v.scale != nil {
		req.Writes(&v.scale.dep)
	}
	req.labels = req.labels[:len(b.Y)]
	for i, y := range b.Y {
		req.labels[i] = float32(y)
	}
	if len(b.Scale) == 1 && p.group.acceptsBytes {
		req.dataset = p.device.datasetOf(b)
	}
	if req.dataset != nil {
		req.byteScale, req.byteShift, req.rows = b.Scale[0], b.Shift[0], append(req.rows, b.Rows...)
		req.Reads(&req.dataset.dep)
	} else if err := p.useSlot(req, b); err != nil {
		return nil, err
	}
	req.Batch, req.Then = req, req.onDone
	p.device.exec.EnqueueOp(&req.Op)
	return req.wait, nil
}

// useSlot copies the batch of a request to a slot.
func (p *Program) useSlot(req *request, b device.Batch) (err error) {
	if req.slot, err = p.acquireSlot(p.mems[0], b); err != nil {
		return err
	}
	req.channels = len(b.Scale)
	p.fillSlot(req.slot, b, 0)
	req.Reads(&req.slot.dep)
	if req.channels > 0 {
		req.Writes(&p.mems[0].dep)
	}
	return nil
}

// newRequest returns an empty request, in memory of an earlier one.
func (g *group) newRequest() *request {
	req, ok := g.freeRequests.Get().(*request)
	if !ok {
		req = &request{results: make([]float32, g.results.to-g.results.from), done: make(chan struct{}, 1)}
		req.labels, req.rows = make([]float32, 0, g.code.Batch), make([]int32, 0, g.code.Batch)
		req.onDone, req.wait = req.finish, req.waitResult
	}
	*req = request{requestBatch: requestBatch{labels: req.labels[:0], rows: req.rows[:0]}, group: g,
		results: req.results, done: req.done, onDone: req.onDone, wait: req.wait}
	return req
}

// waitResult waits for the launch and returns its results.
func (req *request) waitResult() error {
	<-req.done
	p, err := req.program, req.err
	if err == nil {
		req.group.results.collect(req.results, p.code.Results, req.out)
	} else {
		err = p.failed(err)
	}
	req.Op, req.lossScale = executor.Op{}, nil // an idle request refers to no vectors
	req.group.freeRequests.Put(req)
	return err
}

// finish takes the results, on the executor.
func (req *request) finish() {
	ex := req.group.mem.ex
	if req.slot != nil {
		req.slot.busy.Store(false)
	}
	if s := req.staging; s != nil {
		if n := len(req.results); n > 0 {
			all := s.results.Float32s(req.group.resultBytes(maxMembers) / 4)
			copy(req.results, all[req.group.scalerBytes()/4+req.index*n:])
		}
		if req.lossScale != nil && req.err == nil && ex.Err() == nil {
			req.lossScale.arrived(s.results.Bytes[req.index*kernels.ScalerBytes:])
		}
		if s.unread--; s.unread == 0 {
			req.group.mem.freeSlots = append(req.group.mem.freeSlots, s)
		}
	}
	if req.err == nil {
		req.err = ex.Err()
	}
	req.done <- struct{}{}
}

// SendBatch sends requests in as few launches as possible.
func (req *request) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	for len(ops) > 0 {
		part := ops[:min(len(ops), maxMembers)]
		ops = ops[len(part):]
		var all [maxMembers]*request
		members := all[:len(part)]
		for i, p := range part {
			members[i] = p.Batch.(*request)
		}
		err := req.group.launch(ex, members)
		if err != nil && driver.IsOutOfMemory(err) { // then nothing was sent
			for _, p := range members {
				p.err = err
			}
		} else if err != nil {
			return err
		}
	}
	return nil
}

// launch sends one launch, in the megakernel where that accepts it.
func (g *group) launch(ex *executor.Executor, members []*request) error {
	if appended, err := g.appendToMegakernel(ex, members); appended || err != nil {
		return err
	}
	if err := ex.Collector.Flush(); err != nil {
		return err
	}
	if err := g.allocMemory(ex); err != nil {
		return err
	}
	s, err := g.acquireStaging(ex)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.slot != nil {
			if m.input, err = m.program.awaitBatch(m.slot, m.channels, 0); err != nil {
				return err
			}
		}
	}
	g.writeInputs(s.inputs.Bytes, g.layout, members)
	if err := ex.CopyToDevice(g.mem.inputs.At, s.inputs.Pointer(), g.layout.bytes()); err != nil {
		return err
	}
	k := g.keyOf(members)
	if err := g.mem.graphs.Launch(ex, k, g.code.Name, func() error { return g.sendKernels(ex, k) }); err != nil {
		return err
	}
	if n := g.resultBytes(len(members)); n > 0 {
		if err := ex.CopyFromDevice(s.results.Pointer(), g.mem.results.At, n); err != nil {
			return err
		}
	}
	s.unread = len(members)
	for i, m := range members {
		m.staging, m.index = s, i
		if m.slot != nil {
			if err := ex.Record(m.slot.consumed, ex.Stream); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *group) keyOf(members []*request) graphKey {
	k := graphKey{members: len(members)}
	if p := members[0]; p.dataset != nil {
		k.dataset, k.scale, k.shift = p.dataset.block.Address(), math.Float32bits(p.byteScale),
			math.Float32bits(p.byteShift)
	}
	return k
}

// memoryNeeds lists the memory blocks of the group.
func (g *group) memoryNeeds() []blockNeed {
	m := g.mem
	return []blockNeed{{&m.inputs, g.layout.bytes()}, {&m.arena, maxMembers * 4 * g.arenaStride},
		{&m.results, g.resultBytes(maxMembers)},
		{&m.scratch, 8 * kernels.GroupScratch(g.code, maxMembers)}}
}

// lacksMemory reports whether memory is not allocated: the scratch comes last.
func (g *group) lacksMemory() bool { return g.mem.scratch.Size == 0 }

// allocMemory allocates the memory at the group's first launch.
func (g *group) allocMemory(ex *executor.Executor) (err error) {
	for _, w := range g.memoryNeeds() {
		if w.missing() {
			if *w.block, err = ex.Alloc(max(w.bytes, 4)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *group) acquireStaging(ex *executor.Executor) (*stagingSlot, error) {
	if n := len(g.mem.freeSlots); n > 0 {
		s := g.mem.freeSlots[n-1]
		g.mem.freeSlots = g.mem.freeSlots[:n-1]
		return s, nil
	}
	inputs, err := ex.AllocBuffer(g.layout.bytes())
	if err != nil {
		return nil, err
	}
	results, err := ex.AllocBuffer(max(4, g.resultBytes(maxMembers)))
	if err != nil {
		ex.PutBuffer(inputs)
		return nil, err
	}
	clear(results.Bytes)
	return &stagingSlot{inputs: inputs, results: results}, nil
}

// writeInputs writes the inputs of a launch to pinned memory.
func (g *group) writeInputs(b []byte, s inputLayout, members []*request) {
	list := func(at int) []kernels.Address {
		return unsafe.Slice((*kernels.Address)(unsafe.Pointer(&b[at])), s.members)
	}
	params, grads, inputs, arenas := list(s.params()), list(s.grads()), list(s.inputs()), list(s.arenas())
	scalers := list(s.scalers())
	rows := unsafe.Slice((*int32)(unsafe.Pointer(&b[s.rows()])), s.members*s.batch)
	labels := unsafe.Slice((*float32)(unsafe.Pointer(&b[s.labels()])), s.members*s.batch)
	for i, p := range members {
		params[i], grads[i], inputs[i] = p.params, p.grad, p.input
		arenas[i] = g.mem.arena.Address() + kernels.Address(4*g.arenaStride*i)
		if p.lossScale != nil {
			scalers[i] = p.lossScale.block.Address()
		}
		copy(rows[i*s.batch:], p.rows)
		copy(labels[i*s.batch:], p.labels)
	}
	*(*uint32)(unsafe.Pointer(&b[s.counter()])) = kernels.NoBadRow
}

func (g *group) kernelGroup(k graphKey, inputs kernels.Address, s inputLayout) kernels.Group {
	m := g.mem
	at := func(offset int) kernels.Address { return inputs + kernels.Address(offset) }
	kg := kernels.Group{Agents: k.members, Params: at(s.params()), Grads: at(s.grads()), Arena: m.arena.Address(),
		Arenas: at(s.arenas()), Stride: g.arenaStride, Labels: at(s.labels()), Scratch: m.scratch.Address(), Bad: at(
			s.counter()), TF32: g.dev.precision == TF32,
		TensorCores: g.dev.properties.CC >= 80, Half: g.halfAt(at(s.scalers()), m.results.Address())}
	if k.dataset != 0 {
		kg.Bytes = &kernels.ByteInputs{Bytes: k.dataset, Rows: at(s.rows()), Scale: math.Float32frombits(k.scale),
			Shift: math.Float32frombits(k.shift)}
	} else {
		kg.Inputs = at(s.inputs())
	}
	return kg
}

// sendKernels sends the kernels of a launch.
func (g *group) sendKernels(ex *executor.Executor, k graphKey) error {
	calls, err := g.kernelGroup(k, g.mem.inputs.Address(), g.layout).Lower(g.code)
	if err != nil {
		return err
	}
	if err := ex.Launch(calls...); err != nil || g.results.bytes() == 0 {
		return err
	}
	return ex.Launch(g.collectResults(g.mem.results.Address()+kernels.Address(g.scalerBytes()), k.members))
}

func (g *group) collectResults(to kernels.Address, members int) kernels.Call {
	return kernels.Collect(to, g.mem.arena.Address()+kernels.Address(4*g.results.from), g.arenaStride,
		g.results.bytes()/4, members)
}
