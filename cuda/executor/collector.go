package executor

import (
	"slices"

	"fspda/cuda/kernels"
)

// Collector collects the kernels of several levels of operations, to launch them together. The
// executor calls it on its goroutine.
type Collector interface {
	// Accepts reports whether a call can be collected. A call that cannot has a launch of its own,
	// after Flush.
	Accepts(c kernels.Call) bool
	// AcceptsVectors reports whether operations on vectors of n numbers are collected one by one.
	// Otherwise they share launches with operations of other agents.
	AcceptsVectors(n int) bool
	// Append adds a call to the current level.
	Append(c kernels.Call) error
	// NextLevel begins a level, whose calls run after the calls of the current one.
	NextLevel()
	// Pending reports whether a call is collected and not launched yet.
	Pending() bool
	// Flush launches the collected calls.
	Flush() error
	// MayHang reports whether there were launches that never end if the GPU does not run all of
	// their thread blocks at once.
	MayHang() bool
}

// separateLaunches is a Collector that collects nothing: each kernel has a launch of its own.
type separateLaunches struct{}

func (separateLaunches) Accepts(kernels.Call) bool { return false }

func (separateLaunches) AcceptsVectors(int) bool { return false }

func (separateLaunches) Append(kernels.Call) error {
	panic("cuda: a kernel is appended, but none is collected")
}

func (separateLaunches) NextLevel() {}

func (separateLaunches) Pending() bool { return false }

func (separateLaunches) Flush() error { return nil }

func (separateLaunches) MayHang() bool { return false }

// AfterSent has a function called when the GPU has completed the work that is sent until the end of
// the current iteration.
func (ex *Executor) AfterSent(then func()) { ex.ops.computed = append(ex.ops.computed, then) }

// sortAcceptedLast puts the operations that the collector accepts after the others, which would
// split its launch.
func (ex *Executor) sortAcceptedLast(ops []*Op) {
	slices.SortStableFunc(ops, func(a, b *Op) int {
		switch x, y := ex.Collector.Accepts(a.Call), ex.Collector.Accepts(b.Call); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
}
