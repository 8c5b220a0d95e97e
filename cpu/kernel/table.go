package kernel

import (
	"fmt"
	"sync"

	"fspda/device"
	"fspda/device/signature"
)

// Kernel is the implementation of a device.Kernel.
type Kernel struct {
	Run     func(o *Args) error
	Scratch func(dims []int, threads int) int // numbers of scratch memory of a call; nil stands for none
	// numbers of memory that a call takes from pools, which all calls share; nil stands for none
	Pooled func(dims []int, threads int) int
	// the operands that may have numbers of 16 bits; nil stands for none
	Half func(dims []int) Halves
}

// Table holds kernels by name.
type Table map[device.Kernel]Kernel

// Scratch returns the numbers of scratch memory that a call needs, on any number of threads up to
// the given one.
func (t Table) Scratch(c *device.Call, threads int) int {
	if size := t[c.Kernel].Scratch; size != nil {
		return max(size(c.Dims, 1), size(c.Dims, threads)) // a run may get no team
	}
	return 0
}

// Pooled returns the length of the memory that a call takes from pools, on a number of threads.
func (t Table) Pooled(c *device.Call, threads int) int {
	if size := t[c.Kernel].Pooled; size != nil {
		return size(c.Dims, threads)
	}
	return 0
}

// Half returns the operands of a call that may have numbers of 16 bits.
func (t Table) Half(c *device.Call) Halves {
	if half := t[c.Kernel].Half; half != nil {
		return half(c.Dims)
	}
	return Halves{}
}

// Call runs one kernel on host slices: in and out are the operands, and the Refs of c.In and c.Out
// are ignored. The error names the kernel and the operand that does not fit c.Dims, or the row and
// value of a label that is not a class.
func (t Table) Call(c *device.Call, in, out [][]float32) error {
	s, err := signature.Find(c)
	if err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	if err := s.Fit(c.Dims, lengths(in), lengths(out)); err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	b := scratchPool.Get().(*scratchBuffer)
	defer scratchPool.Put(b)
	n := t.Scratch(c, 1)
	b.numbers = Grow(b.numbers, n)
	if err := t[c.Kernel].Run(&Args{In: in, Out: out, Dims: c.Dims, Attr: c.Attr, Scratch: b.numbers[:n]}); err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	return nil
}

// scratchBuffer is the scratch memory of a single call. A Program has its own.
type scratchBuffer struct{ numbers []float32 }

var scratchPool = sync.Pool{New: func() any { return new(scratchBuffer) }}

func lengths(s [][]float32) []int {
	n := make([]int, len(s))
	for i := range s {
		n[i] = len(s[i])
	}
	return n
}
