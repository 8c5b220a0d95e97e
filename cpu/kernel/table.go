package kernel

import (
	"fmt"
	"sync"

	"fspda/device"
	"fspda/device/signature"
)

// kernel is an implementation of a device.Kernel.
type Kernel struct {
	Run     func(o *Args) error
	Scratch func(dims []int, threads int) int // the numbers that a call works in; nil stands for none
}

// table holds kernels by name.
type Table map[device.Kernel]Kernel

// scratch is how many numbers a call needs to work in, on one thread or on so many.
func (t Table) Scratch(c *device.Call, threads int) int {
	if size := t[c.Kernel].Scratch; size != nil {
		return max(size(c.Dims, 1), size(c.Dims, threads)) // there may be no team left
	}
	return 0
}

// call runs one kernel on host slices: in and out stand for c.In and c.Out, whose Refs are not looked at. The error names the
// kernel and the operand that does not fit c.Dims, or the row and value of a label that is no class.
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

// scratchBuffer is what a single call works in. A Program has its own.
type scratchBuffer struct{ numbers []float32 }

var scratchPool = sync.Pool{New: func() any { return new(scratchBuffer) }}

func lengths(s [][]float32) []int {
	n := make([]int, len(s))
	for i := range s {
		n[i] = len(s[i])
	}
	return n
}
