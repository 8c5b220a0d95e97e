package cpu

import (
	"fmt"
	"sync"

	"fspda/device"
	"fspda/device/signature"
)

// kernel is an implementation of a device.Kernel.
type kernel struct {
	run     func(o *operands) error
	scratch func(dims []int, threads int) int // the numbers that a call works in; nil stands for none
}

// table holds kernels by name.
type table map[device.Kernel]kernel

// scratch is how many numbers a call needs to work in, on one thread or on so many.
func (t table) scratch(c *device.Call, threads int) int {
	if size := t[c.Kernel].scratch; size != nil {
		return max(size(c.Dims, 1), size(c.Dims, threads)) // there may be no team left
	}
	return 0
}

// call runs one kernel on host slices: in and out stand for c.In and c.Out, whose Refs are not looked at. The error names the
// kernel and the operand that does not fit c.Dims, or the row and value of a label that is no class.
func (t table) call(c *device.Call, in, out [][]float32) error {
	s, err := signature.Find(c)
	if err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	if err := s.Fit(c.Dims, lengths(in), lengths(out)); err != nil {
		return fmt.Errorf("cpu: %s: %w", signature.Title(c), err)
	}
	b := scratchPool.Get().(*scratchBuffer)
	defer scratchPool.Put(b)
	n := t.scratch(c, 1)
	b.numbers = atLeast(b.numbers, n)
	if err := t[c.Kernel].run(&operands{in: in, out: out, dims: c.Dims, attr: c.Attr, scratch: b.numbers[:n]}); err != nil {
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
