package cuda

import (
	"sync/atomic"

	"fspda/cuda/driver"
	"fspda/cuda/executor"
	"fspda/device"
)

// Gradients of a network that is too large for a batch group, but small, do not fill a GPU. Those
// of several agents are computed at the same time, on branches: streams with an arena and a
// workspace of the libraries each. An agent keeps the branch of its gradient vector. The kernels
// are the same on each, and so are all bits.
const (
	maxBranches    = 8
	maxBranchBytes = 64 << 20 // Programs that compute in more memory take turns.
)

// branches is the branches of a device, which vectors of gradients are given in turn. The first is
// the executor's own stream, with the arena of all other programs. The executor uses them.
type branches struct {
	given atomic.Uint32
	bytes atomic.Int64 // The most memory of a program with a branch, of those that Footprint was asked about.
	fork  driver.Event // Recorded before the work of a batch; 0: not made yet.
	all   [maxBranches]*sideBranch
}

// sideBranch is a stream beside the executor's, and the memory of its programs.
type sideBranch struct {
	stream    driver.Stream
	arena     sharedArena
	workspace executor.Block
	done      driver.Event
}

// branchesFor reports whether gradients of code have a branch, which compute in some bytes.
func (d *Device) branchesFor(code *device.Code, bytes int) bool {
	_, grouped := d.groupable(code)
	return code.Gradient && !grouped && bytes < maxBranchBytes
}

// BranchBytes forecasts the bytes of the memory of branches, of a number of programs, beside the
// arena that all programs have.
func (d *Device) BranchBytes(programs int) uint64 {
	bytes := int(d.branches.bytes.Load())
	if bytes == 0 || programs < 2 {
		return 0
	}
	return uint64(min(programs, maxBranches)-1) * uint64(executor.SizeClass(bytes)+executor.SizeClass(blasWorkspace))
}

// branchOf returns the number of the branch on which gradients are written to the vector.
func (v *Vector) branchOf() int {
	if v.branch.Load() == 0 {
		v.branch.CompareAndSwap(0, 1+(v.d.branches.given.Add(1)-1)%maxBranches)
	}
	return int(v.branch.Load() - 1)
}

// programRun is a run of a program on a branch. Branches of several agents compute at the same time.
type programRun struct {
	executor.Op
	program *Program
	branch  int
	bytes   int                              // The memory that it computes in.
	send    func(on *sideBranch) (err error) // Sends it to the executor's current stream.
}

// BatchesWith reports whether two runs are of programs of one device.
func (r *programRun) BatchesWith(other executor.Batchable) bool {
	x, ok := other.(*programRun)
	return ok && x.program.device == r.program.device
}

func (r *programRun) LevelStride() int { return executor.LevelsPerIteration }

// SendBatch sends runs to their branches, between which nothing is ordered. The executor's stream
// goes on when all are done. A program that has not run yet has the libraries allocate memory, and
// computes on that stream.
func (r *programRun) SendBatch(ex *executor.Executor, ops []*executor.Op) error {
	if err := ex.Collector.Flush(); err != nil {
		return err
	}
	bs := &r.program.device.branches
	var on [maxBranches][]*programRun
	for _, p := range ops {
		run := p.Batch.(*programRun)
		i := run.branch
		if !run.program.warm || ex.API.Blocking || !bs.prepare(ex, i, run.bytes) {
			i = 0
		}
		on[i] = append(on[i], run)
	}
	if err := bs.begin(ex, on[1:]); err != nil {
		return err
	}
	for i, runs := range on {
		for _, run := range runs {
			if err := run.sendTo(ex, bs.all[i]); err != nil {
				return err
			}
		}
	}
	return bs.end(ex, on[1:])
}

// sendTo sends a run to a branch, or to the executor's stream if that is nil.
func (r *programRun) sendTo(ex *executor.Executor, b *sideBranch) error {
	if b == nil {
		return r.send(nil)
	}
	return ex.On(b.stream, func() error { return r.send(b) })
}

// prepare makes a branch with at least some bytes of memory. It is false if there is too little
// memory for one.
func (bs *branches) prepare(ex *executor.Executor, i, bytes int) bool {
	if i == 0 {
		return true
	}
	b := bs.all[i]
	if b == nil {
		var err error
		if b, err = newSideBranch(ex); err != nil {
			return false
		}
		bs.all[i] = b
	}
	_, err := b.arena.atLeast(ex, bytes)
	return err == nil
}

func newSideBranch(ex *executor.Executor) (b *sideBranch, err error) {
	b = &sideBranch{}
	if b.workspace, err = ex.Alloc(blasWorkspace); err != nil {
		return nil, err
	}
	if b.done, err = ex.TakeEvent(); err == nil {
		b.stream, err = ex.NewStream()
	}
	if err != nil {
		ex.PutBlock(b.workspace)
	}
	return b, err
}

// begin has the branches that have runs wait for the work on the executor's stream.
func (bs *branches) begin(ex *executor.Executor, runs [][]*programRun) (err error) {
	if bs.fork == 0 {
		if bs.fork, err = ex.TakeEvent(); err != nil {
			return err
		}
	}
	recorded := false
	for i := range runs {
		if len(runs[i]) == 0 {
			continue
		}
		if !recorded {
			if err := ex.Record(bs.fork, ex.Stream); err != nil {
				return err
			}
			recorded = true
		}
		if err := ex.WaitEvent(bs.all[i+1].stream, bs.fork); err != nil {
			return err
		}
	}
	return nil
}

// end has the executor's stream wait for the branches that have runs.
func (bs *branches) end(ex *executor.Executor, runs [][]*programRun) error {
	for i := range runs {
		if len(runs[i]) == 0 {
			continue
		}
		b := bs.all[i+1]
		if err := ex.Record(b.done, b.stream); err != nil {
			return err
		}
		if err := ex.WaitEvent(ex.Stream, b.done); err != nil {
			return err
		}
	}
	return nil
}
