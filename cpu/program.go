package cpu

import (
	"fmt"
	"time"

	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
	"fspda/device/signature"
)

// Program is Code on the host. It computes on the calling goroutine, with the helpers that the
// Device lends it, and allocates nothing in Run. It is not safe for concurrent use: load one per
// goroutine.
type Program struct {
	device          *Device
	workers         kernel.Workers
	code            *device.Code
	steps           []step
	runtimeOperands []runtimeOperand  // the operands that lie in what Run is given
	spaces          [spaces][]float32 // by device.Space; Labels and Momentum are the Program's own, and so is a small Arena
	results         []int             // offsets into the arena
	sharedSize      int               // the length of what each Run borrows for arena and scratch; 0 if it has its own
	classes         int               // the fewest classes that a kernel reads the labels for; 0 if none does
	scratch         []float32         // what the kernels work in, one after the other

	examples examples
}

var _ device.Program = (*Program)(nil)

const spaces = int(device.Momentum) + 1

// step is a kernel call with its operands in place.
type step struct {
	kernel.Args
	run func(*kernel.Args) error
}

// moving is an operand whose place is known only at Run.
type runtimeOperand struct {
	operand *[]float32
	ref     device.Ref
}

// Load binds code to this device. The error names the call, and the operand that is of the wrong
// length, outside its space, or overlaps another one in a way that its kernel does not allow. The
// result is a *Program.
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
	p := &Program{device: d, code: code, steps: make([]step, len(code.Calls)), results: make([]int, len(code.Results))}
	p.examples.asBytes = readsBytes(code)
	p.allocate()
	for i := range code.Calls {
		c, s := &code.Calls[i], &p.steps[i]
		s.run, s.Dims, s.Attr = kernels[c.Kernel].Run, c.Dims, c.Attr
		s.Args.Workers, s.Bytes, s.Scratch = &p.workers, &p.examples.matrix, p.scratch
		s.In, s.Out = p.operands(c.In), p.operands(c.Out)
		p.countClasses(c)
	}
	for i, r := range code.Results {
		p.results[i] = r.Ref.Off
	}
	return p, nil
}

// place makes the operands of refs: those in the Program's own spaces now, the others at each Run.
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

// owns says whether a space is the Program's own.
func (p *Program) ownsSpace(s device.Space) bool {
	switch s {
	case device.Arena:
		return p.sharedSize == 0
	case device.Labels, device.Momentum:
		return true
	}
	return false
}

// part is the piece of a space that r names. Its capacity ends with it.
func slice(space []float32, r device.Ref) []float32 { return space[r.Off : r.Off+r.Len : r.Off+r.Len] }

// countClasses learns from a kernel that reads the batch's labels as classes how many there are.
func (p *Program) countClasses(c *device.Call) {
	switch c.Kernel {
	case device.SoftmaxCrossEntropy, device.Score:
		if n := c.Dims[1]; c.In[1].Space == device.Labels && (p.classes == 0 || n < p.classes) {
			p.classes = n
		}
	}
}

// Workspace is how many bytes the kernels of the Program work in, beside the arena: what the one
// that needs most does.
func (p *Program) Workspace() int { return 4 * maxScratch(p.code, p.device.threads) }

// Code is what was loaded.
func (p *Program) Code() *device.Code { return p.code }

// Run executes all calls on b. params and grad are *Vectors of length Code.Dim (grad is nil for
// Code without gradient) and out has one element per result: anything else panics. A batch of the
// wrong size is an error, and so is a label that is no class, which is a *LabelError inside; then
// grad and out are as they were.
func (p *Program) Run(params, grad device.Vector, b device.Batch, out []float64) error {
	return p.RunBuffered(params, grad, nil, 0, b, out)
}

// RunBuffered is Run for code with buffers: buffers is a *Vector of length Code.Buffers, or nil
// where that is 0, and momentum is from 0 to 1, or it panics. A batch that Run refuses leaves the
// buffers as they were.
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

// borrow asks the Device for helpers and for a large arena, until giveBack.
func (p *Program) acquire() {
	p.workers.Team = p.device.teams.Acquire()
	if p.sharedSize > 0 {
		p.attachArena(p.device.arenas.acquire(p.sharedSize))
	}
	for i := range p.runtimeOperands {
		m := &p.runtimeOperands[i]
		if m.ref.Space == device.Input && p.examples.matrix.Bytes != nil {
			*m.operand = nil
			continue
		}
		*m.operand = slice(p.spaces[m.ref.Space], m.ref)
	}
}

func (p *Program) release() {
	p.device.teams.Release(p.workers.Team)
	p.workers.Team = nil
	if p.sharedSize > 0 {
		p.releaseArena()
	}
}

func (p *Program) failed(i int, err error) error {
	return fmt.Errorf("cpu: run %s: call %d, %s: %w", p.code.Name, i, signature.Title(&p.code.Calls[i]), err)
}

// prepare checks what Run is given and puts the moving operands in their places.
func (p *Program) prepare(params, grad device.Vector, b device.Batch, out []float64) error {
	vec.CheckLen("Run", "out", len(out), len(p.results))
	p.spaces[device.Params] = vec.Data("Run", params)
	vec.CheckLen("Run", "params", len(p.spaces[device.Params]), p.code.Dim)
	if p.code.Gradient {
		p.spaces[device.Grads] = vec.Data("Run", grad)
		vec.CheckLen("Run", "grad", len(p.spaces[device.Grads]), p.code.Dim)
	} else if grad != nil {
		panic("cpu: Run: a gradient is wanted of code without gradient, want nil")
	}
	if err := p.checkBatch(b); err != nil {
		return err
	}
	p.spaces[device.Input] = p.examples.load(b, p.code.Features)
	labels := p.spaces[device.Labels]
	for i, y := range b.Y {
		labels[i] = float32(y)
	}
	return nil
}

// takeBuffers checks the buffers that RunBuffered is given.
func (p *Program) setBuffers(buffers device.Vector, momentum float64) {
	if !(momentum >= 0 && momentum <= 1) {
		panic(fmt.Sprintf("cpu: RunBuffered: momentum is %v, want 0 to 1", momentum))
	}
	p.spaces[device.Buffers], p.spaces[device.Momentum][0] = nil, float32(momentum)
	if p.code.Buffers > 0 {
		p.spaces[device.Buffers] = vec.Data("RunBuffered", buffers)
		vec.CheckLen("RunBuffered", "buffers", len(p.spaces[device.Buffers]), p.code.Buffers)
	} else if buffers != nil {
		panic("cpu: RunBuffered: buffers are given to code without any, want nil")
	}
}

func (p *Program) checkBatch(b device.Batch) error {
	if err := b.Check(p.code.Batch, p.code.Features); err != nil {
		return err
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

// collect writes the results to out.
func (p *Program) readResults(out []float64) {
	arena := p.spaces[device.Arena]
	for i, off := range p.results {
		out[i] = float64(arena[off])
	}
}
