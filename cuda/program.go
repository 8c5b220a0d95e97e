package cuda

import (
	"errors"
	"fmt"

	"fspda/cuda/compiler"
	"fspda/cuda/cublas"
	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/device/signature"
)

// Program is code on a GPU. A run copies the batch to the device, sends all kernels, and waits for
// the results, or leaves that to the caller. The first run sends each kernel; later ones with the
// same vectors launch a graph of them, captured once. It is not safe for concurrent use.
//
// Gradients of small networks are computed in a batch group: see group. All other Programs of a
// device share one arena for intermediate values, since the stream runs them one after the other.
type Program struct {
	device *Device
	code   *device.Code
	plan   *compiler.Plan
	steps  []step
	routes []convRoute
	mems   [maxBranches]*programMemory // The memory of each branch; nil if it was not used yet. The first is never nil.
	layout layout
	group  *group // nil: the program has launches of its own

	batch   batchInfo
	warm    bool // it has run once, so that libraries have allocated their memory
	small   bool // its runs have branches
	results resultRange
}

// step sends one task to the GPU.
type step func(env *launchEnv) error

// launchEnv is the addresses of a run, and the handles that send it.
type launchEnv struct {
	ex      *executor.Executor
	blas    *cublas.Handle
	spaces  [spaces]kernels.Address
	scratch kernels.Address // memory that a step may use, with any content
	scalars scalars
	math    cublas.Compute
	scaler  kernels.Address // the loss scale; 0 unless the loss is scaled
}

const spaces = int(device.Key) + 1

// programKey is everything that a captured graph depends on: the addresses of vectors, arena, batch
// and loss scale.
type programKey struct{ params, grad, buffers, arena, input, labels, scaler kernels.Address }

// Load prepares code for this device. The error names the call that is invalid or not supported.
func (d *Device) Load(code *device.Code) (device.Program, error) {
	p, err := d.load(code)
	if err != nil {
		return nil, fmt.Errorf("cuda: load %s: %w", code.Name, withAdvice(d, code, err))
	}
	return p, nil
}

func (d *Device) load(code *device.Code) (*Program, error) {
	if err := signature.Check(code); err != nil {
		return nil, err
	}
	if err := checkKernels(code); err != nil {
		return nil, err
	}
	plan, err := d.compile(code)
	if err != nil {
		return nil, err
	}
	l := newLowerer(d, plan)
	p := &Program{device: d, code: code, plan: plan, results: rangeOf(plan.Results), layout: l.layout}
	if p.steps, err = l.lower(plan); err != nil {
		return nil, err
	}
	p.routes = l.routes
	p.group = d.groups.of(d, code)
	p.small = d.branchesFor(code, p.layout.total())
	p.batch = batchInfo{code.Classes(), embeddedTokens(code)}
	if _, err := p.memoryOf(0); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Program) Code() *device.Code { return p.code }

// Run executes all calls on b: see device.Program. A label that is no class is a *LabelError.
func (p *Program) Run(params, grad device.Vector, b device.Batch, out []float64) error {
	return p.RunBuffered(params, grad, nil, 0, b, out)
}

// RunBuffered is Run for code with buffers.
func (p *Program) RunBuffered(params, grad, buffers device.Vector, momentum float64, b device.Batch,
	out []float64) error {
	return p.Start(params, grad, buffers, momentum, b, out)()
}

// Start is RunBuffered that does not wait: see device.Program.
func (p *Program) Start(params, grad, buffers device.Vector, momentum float64, b device.Batch,
	out []float64) (wait func() error) {
	v := p.vectors(params, grad, buffers, momentum, out)
	over, err := p.start(v, float32(momentum), b, out)
	if err != nil {
		return func() error { return p.failed(err) }
	}
	return over
}

func (p *Program) start(v vectors, momentum float32, b device.Batch, out []float64) (wait func() error, err error) {
	if err := p.checkBatch(b); err != nil {
		return nil, err
	}
	if err := p.device.Err(); err != nil {
		return nil, err
	}
	if p.plan.Scaling {
		if v.scale, err = v.grad.lossScale(); err != nil {
			return nil, err
		}
	}
	if p.group != nil {
		return p.startInGroup(v, b, out)
	}
	branch := 0
	if p.small {
		branch = v.grad.branchOf()
	}
	m, err := p.memoryOf(branch)
	if err != nil {
		return nil, err
	}
	s, err := p.acquireSlot(m, b)
	if err != nil {
		return nil, err
	}
	p.fillSlot(s, b, momentum)
	return p.execute(v, s, branch, len(b.Scale), out)
}

func (p *Program) failed(err error) error {
	return fmt.Errorf("cuda: run %s: %w", p.code.Name, withAdvice(p.device, p.code, err))
}

// withAdvice adds advice to an out-of-memory error.
func withAdvice(d *Device, code *device.Code, err error) error {
	if !driver.IsOutOfMemory(err) {
		return err
	}
	return fmt.Errorf("%w: %s", err, d.memoryAdvice(code))
}

// vectors is the checked vectors of a run.
type vectors struct {
	params, grad, buffers *Vector
	scale                 *lossScale // the loss scale of the gradient; nil where the loss is not scaled
}

func (v vectors) key(arena, input, labels kernels.Address) programKey {
	k := programKey{params: v.params.address(), grad: v.grad.address(), buffers: v.buffers.address(), arena: arena,
		input: input, labels: labels}
	if v.scale != nil {
		k.scaler = v.scale.block.Address()
	}
	return k
}

// vectors checks the caller's vectors. It panics where they do not fit the code.
func (p *Program) vectors(params, grad, buffers device.Vector, momentum float64, out []float64) (v vectors) {
	if !(momentum >= 0 && momentum <= 1) {
		panic(fmt.Sprintf("cuda: RunBuffered: momentum is %v, want 0 to 1", momentum))
	}
	if p.code.Buffers > 0 {
		v.buffers = p.device.vector("RunBuffered", buffers)
		checkLen("RunBuffered", "buffers", v.buffers.n, p.code.Buffers)
	} else if buffers != nil {
		panic("cuda: RunBuffered: buffers for code without buffers, want nil")
	}
	checkLen("Run", "out", len(out), len(p.code.Results))
	v.params = p.device.vector("Run", params)
	checkLen("Run", "params", v.params.n, p.code.Dim)
	if p.code.Gradient {
		v.grad = p.device.vector("Run", grad)
		checkLen("Run", "grad", v.grad.n, p.code.Dim)
	} else if grad != nil {
		panic("cuda: Run: grad for code without gradient, want nil")
	}
	return v
}

// accesses returns the vectors that a run reads and writes.
func (v vectors) accesses() []executor.Access {
	all := []executor.Access{executor.Reads(&v.params.dep)}
	if v.grad != nil {
		all = append(all, executor.Writes(&v.grad.dep))
	}
	if v.buffers != nil {
		all = append(all, executor.Writes(&v.buffers.dep))
	}
	if v.scale != nil {
		all = append(all, executor.Writes(&v.scale.dep))
	}
	return all
}

// execute queues the run of a batch in a slot. The result waits for it.
func (p *Program) execute(v vectors, s *inputSlot, branch, channels int, out []float64) (wait func() error, err error) {
	ex := p.device.exec
	host, err := takeHostResults(ex, p.results)
	if err != nil {
		s.busy.Store(false)
		return nil, err
	}
	var failed error
	done := make(chan struct{})
	run := &programRun{program: p, branch: branch, bytes: p.layout.total(), send: func(on *sideBranch) error {
		failed = p.send(ex, v, s, channels, host, on)
		if driver.IsOutOfMemory(failed) { // then nothing was sent
			return nil
		}
		return failed
	}}
	run.Then = func() {
		s.busy.Store(false)
		if failed == nil {
			failed = ex.Err()
		}
		close(done)
	}
	accesses := append(v.accesses(), executor.Reads(&s.dep))
	if p.small {
		run.Batch = run
	} else {
		run.Send = func() error { return run.send(nil) }
		accesses = append(accesses, executor.Writes(&p.device.arena.dep))
	}
	ex.EnqueueOp(&run.Op, accesses...)
	return func() error {
		<-done
		defer host.put(ex)
		if failed == nil {
			p.results.collect(host.numbers(p.results), p.plan.Results, out)
			if v.scale != nil {
				v.scale.arrived(host[0].Bytes)
			}
			return nil
		}
		return p.failed(failed)
	}, nil
}

// send sends a run to the executor's stream, on the executor. on is the branch of that stream, nil
// for its own.
func (p *Program) send(ex *executor.Executor, v vectors, s *inputSlot, channels int, host hostResults,
	on *sideBranch) error {
	memory, workspace := &p.device.arena, p.device.handles.workspace
	if on != nil {
		memory, workspace = &on.arena, on.workspace.At
	}
	arena, err := memory.atLeast(ex, p.layout.total())
	if err != nil {
		return err
	}
	input, err := p.awaitBatch(s, channels, arena)
	if err != nil {
		return err
	}
	if err := p.sendCalls(ex, s.of, v.key(arena, input, s.labels.Address()), workspace); err != nil {
		return err
	}
	if err := ex.Record(s.consumed, ex.Stream); err != nil {
		return err
	}
	if v.scale != nil {
		if err := v.scale.fetch(ex, host[0]); err != nil {
			return err
		}
	}
	return host.fetch(ex, arena, p.results)
}

// sendCalls sends the steps, by a graph from the second run on, in which products have a workspace.
func (p *Program) sendCalls(ex *executor.Executor, m *programMemory, key programKey, workspace driver.Pointer) error {
	if _, ok := m.graphs[key]; !ok && (!p.warm || len(p.steps) < 2) {
		p.warm = len(p.steps) > 1
		return p.sendSteps(p.env(ex, m, key))
	}
	return m.graphs.Launch(ex, key, p.code.Name, func() error {
		h := &p.device.handles
		if err := h.useWorkspace(workspace); err != nil {
			return err
		}
		return errors.Join(p.sendSteps(p.env(ex, m, key)), h.useWorkspace(h.workspace))
	})
}

func (p *Program) env(ex *executor.Executor, m *programMemory, key programKey) *launchEnv {
	env := &launchEnv{ex: ex, blas: p.device.handles.blas, scratch: key.arena + kernels.Address(p.layout.arena),
		scalars: m.scalars(), math: p.device.compute(), scaler: key.scaler}
	env.scalars.momentum = key.labels + 4*kernels.Address(p.code.LabelNumbers())
	env.spaces = [spaces]kernels.Address{
		device.Params:   key.params,
		device.Grads:    key.grad,
		device.Arena:    key.arena,
		device.Input:    key.input,
		device.Labels:   key.labels,
		device.Buffers:  key.buffers,
		device.Momentum: env.scalars.momentum,
		device.Key:      env.scalars.momentum + 4,
	}
	return env
}

func (p *Program) sendSteps(env *launchEnv) error {
	for i, s := range p.steps {
		err := s(env)
		if err == nil && env.ex.API.Blocking { // libraries have launches of their own
			err = env.ex.Synchronize()
		}
		if err != nil {
			return fmt.Errorf("call %d, %s: %w", i, p.plan.Tasks[i].Title(), err)
		}
	}
	return nil
}
