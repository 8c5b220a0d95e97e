package cpu

import (
	"fmt"
	"time"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
	"fspda/device/signature"
)

// Program is Code loaded on the host. It computes on the calling goroutine, with the workers of a
// team of the Device, and Run allocates nothing. It is not safe for concurrent use: load one per
// goroutine.
type Program struct {
	device          *Device
	workers         kernel.Workers
	code            *device.Code
	planned         *device.Code // the same calls with the places of their operands in memory
	steps           []step
	runtimeOperands []runtimeOperand  // operands in memory that Run is given
	spaces          [spaces][]float32 // memory by device.Space; Labels, Momentum, Key and a small Arena are owned
	results         []int             // offsets into the arena
	// length of the arena and scratch memory to acquire for each run; 0 if the Program owns them
	sharedSize int
	classes    int       // the smallest number of classes that a kernel expects of the labels; 0 if none does
	scratch    []float32 // memory for the kernels, which run one after the other

	examples examples
}

const spaces = int(device.Key) + 1

// step is a kernel call with its operands.
type step struct {
	kernel.Args
	run func(*kernel.Args) error
}

// runtimeOperand is an operand whose memory is known only at Run.
type runtimeOperand struct {
	operand *[]float32
	ref     device.Ref
}

// Load binds code to this device. The error names the call, and the operand that has the wrong
// length, lies outside its space, or overlaps another one in a way that its kernel does not allow.
// The result is a *Program.
func (d *Device) Load(code *device.Code) (device.Program, error) {
	p, err := d.load(code)
	if err != nil {
		return nil, fmt.Errorf("cpu: load %s: %w", code.Name, err)
	}
	return p, nil
}

func (d *Device) load(code *device.Code) (*Program, error) {
	if err := signature.Check(code); err != nil {
		return nil, err
	}
	p := &Program{device: d, code: code, steps: make([]step, len(code.Calls)), results: make([]int, len(code.Results)),
		classes: code.Classes()}
	p.examples.asBytes = !d.bf16 && readsBytes(code)
	planned, halves := d.plan(code)
	p.planned = planned
	p.allocate()
	for i := range planned.Calls {
		c, s := &planned.Calls[i], &p.steps[i]
		s.Half = halves[i]
		s.run, s.Dims, s.Attr = d.kernels[c.Kernel].Run, c.Dims, c.Attr
		s.Args.Workers, s.Bytes, s.Scratch = &p.workers, &p.examples.matrix, p.scratch
		s.In, s.Out = p.operands(c.In), p.operands(c.Out)
	}
	for i, r := range planned.Results {
		p.results[i] = r.Ref.Off
	}
	return p, nil
}

// plan returns code with the places of its operands in memory, and the operands of each call that
// have 16 bits.
func (d *Device) plan(code *device.Code) (*device.Code, []kernel.Halves) {
	if d.bf16 {
		return halved(code, d.kernels)
	}
	return code, make([]kernel.Halves, len(code.Calls))
}

// operands returns the operands that refs name. Those in memory of the Program are set now, the
// others at each run.
func (p *Program) operands(refs []device.Ref) [][]float32 {
	operands := make([][]float32, len(refs))
	for i, r := range refs {
		if p.ownsSpace(r.Space) {
			operands[i] = slice(p.spaces[r.Space], r)
		} else {
			p.runtimeOperands = append(p.runtimeOperands, runtimeOperand{&operands[i], r})
		}
	}
	return operands
}

// ownsSpace reports whether the memory of a space belongs to the Program.
func (p *Program) ownsSpace(s device.Space) bool {
	switch s {
	case device.Arena:
		return p.sharedSize == 0
	case device.Labels, device.Momentum, device.Key:
		return true
	}
	return false
}

// slice returns the part of a space that r names. Its capacity ends with it.
func slice(space []float32, r device.Ref) []float32 { return space[r.Off : r.Off+r.Len : r.Off+r.Len] }

// Workspace returns the bytes of scratch memory, in addition to the arena: the largest
// need of a kernel.
func (p *Program) Workspace() int { return 4 * p.device.maxScratch(p.planned) }

func (p *Program) Code() *device.Code { return p.code }

// Run executes all calls on b. params and grad must be *Vectors of length Code.Dim (grad is nil for
// Code without gradient) and out must have one element per result, or Run panics. A batch of the
// wrong size is an error, and so is a label that is not a class, which wraps a *LabelError; grad
// and out are then unchanged.
func (p *Program) Run(params, grad device.Vector, b device.Batch, out []float64) error {
	return p.RunBuffered(params, grad, nil, 0, b, out)
}

// Start is RunBuffered, which has ended when Start returns.
func (p *Program) Start(params, grad, buffers device.Vector, momentum float64, b device.Batch,
	out []float64) (wait func() error) {
	err := p.RunBuffered(params, grad, buffers, momentum, b, out)
	return func() error { return err }
}

// Routes returns nil: a convolution has one implementation.
func (*Program) Routes() []string { return nil }

// RunBuffered is Run for code with buffers: buffers must be a *Vector of length Code.Buffers, or
// nil if that is 0, and momentum must be from 0 to 1, or it panics. A batch that is refused leaves
// the buffers unchanged.
func (p *Program) RunBuffered(params, grad, buffers device.Vector, momentum float64, b device.Batch,
	out []float64) error {
	p.setBuffers(buffers, momentum)
	if err := p.prepare(params, grad, b, out); err != nil {
		return fmt.Errorf("cpu: run %s: %w", p.code.Name, err)
	}
	p.acquire()
	defer p.release()
	for i := range p.steps {
		s := &p.steps[i]
		if err := s.run(&s.Args); err != nil {
			return p.failed(i, err)
		}
	}
	p.readResults(out)
	return nil
}

// Timed is Run with a clock around each call: it returns the time of each element of Code().Calls.
func (p *Program) Timed(params, grad device.Vector, b device.Batch, out []float64) (perCall []time.Duration,
	err error) {
	p.setBuffers(nil, 0)
	if err := p.prepare(params, grad, b, out); err != nil {
		return nil, fmt.Errorf("cpu: run %s: %w", p.code.Name, err)
	}
	perCall = make([]time.Duration, len(p.steps))
	p.acquire()
	defer p.release()
	for i := range p.steps {
		s, begin := &p.steps[i], time.Now()
		if err := s.run(&s.Args); err != nil {
			return nil, p.failed(i, err)
		}
		perCall[i] = time.Since(begin)
	}
	p.readResults(out)
	return perCall, nil
}

// acquire takes a large arena and a team from the Device, until release.
func (p *Program) acquire() {
	if p.sharedSize > 0 {
		p.attachArena(p.device.arenas.acquire(p.sharedSize))
	}
	p.workers.Team = p.device.teams.Acquire()
	for i := range p.runtimeOperands {
		m := &p.runtimeOperands[i]
		if m.ref.Space == device.Input && p.examples.matrix.Bytes != nil {
			*m.operand = nil
			continue
		}
		*m.operand = slice(p.spaces[m.ref.Space], m.ref)
	}
}

// release returns the memory that acquire took. It clears all references to memory of the caller
// and of the pool, which an idle Program would keep alive.
func (p *Program) release() {
	p.device.teams.Release(p.workers.Team)
	p.workers.Team = nil
	if p.sharedSize > 0 {
		p.releaseArena()
	}
	for i := range p.runtimeOperands {
		*p.runtimeOperands[i].operand = nil
	}
	for _, s := range []device.Space{device.Params, device.Grads, device.Buffers, device.Input} {
		p.spaces[s] = nil
	}
}

func (p *Program) failed(i int, err error) error {
	return fmt.Errorf("cpu: run %s: call %d, %s: %w", p.code.Name, i, signature.Title(&p.code.Calls[i]), err)
}

// prepare checks the arguments of Run and stores the batch.
func (p *Program) prepare(params, grad device.Vector, b device.Batch, out []float64) error {
	vec.CheckLen("Run", "out", len(out), len(p.results))
	p.spaces[device.Params] = vec.Data("Run", params)
	vec.CheckLen("Run", "params", len(p.spaces[device.Params]), p.code.Dim)
	if p.code.Gradient {
		p.spaces[device.Grads] = vec.Data("Run", grad)
		vec.CheckLen("Run", "grad", len(p.spaces[device.Grads]), p.code.Dim)
	} else if grad != nil {
		panic("cpu: Run: grad is given for code without gradient, want nil")
	}
	if err := p.checkBatch(b); err != nil {
		return err
	}
	p.spaces[device.Input] = p.examples.load(b, p.code.Features)
	b.Labels(p.spaces[device.Labels])
	b.KeyNumbers(p.spaces[device.Key])
	return nil
}

// setBuffers checks and stores the buffers of RunBuffered.
func (p *Program) setBuffers(buffers device.Vector, momentum float64) {
	if !(momentum >= 0 && momentum <= 1) {
		panic(fmt.Sprintf("cpu: RunBuffered: momentum is %v, want 0 to 1", momentum))
	}
	p.spaces[device.Buffers], p.spaces[device.Momentum][0] = nil, float32(momentum)
	if p.code.Buffers > 0 {
		p.spaces[device.Buffers] = vec.Data("RunBuffered", buffers)
		vec.CheckLen("RunBuffered", "buffers", len(p.spaces[device.Buffers]), p.code.Buffers)
	} else if buffers != nil {
		panic("cpu: RunBuffered: buffers are given for code without buffers, want nil")
	}
}

func (p *Program) checkBatch(b device.Batch) error {
	if err := b.Check(p.code); err != nil {
		return err
	}
	if b.Tokens != nil {
		return b.CheckTokens(p.code.Vocabulary())
	}
	if p.classes > 0 {
		for i, y := range b.Y {
			if y < 0 || int(y) >= p.classes {
				return &vec.LabelError{Row: i, Value: float64(y), Classes: p.classes}
			}
		}
	}
	return nil
}

func (p *Program) readResults(out []float64) {
	arena := p.spaces[device.Arena]
	for i, off := range p.results {
		out[i] = float64(arena[off])
	}
}
