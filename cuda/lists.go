package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"fspda/cuda/executor"
	"fspda/cuda/kernels"
)

// listCache keeps copies of lists in device memory. Agents have the same lists in each iteration.
type listCache[T comparable] struct {
	mu  sync.Mutex
	all []*listCopy[T]
}

// listCopy is a list with its copy in device memory.
type listCopy[T comparable] struct {
	items []T
	block executor.Block
}

// maxLists is how many lists a cache keeps.
const maxLists = 64

// of returns a list with its copy, which encode writes. The list is not empty. It is nil after a
// failure.
func (c *listCache[T]) of(ex *executor.Executor, items []T, encode func([]T) []byte) *listCopy[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.all {
		if slices.Equal(l.items, items) {
			return l
		}
	}
	l := &listCopy[T]{items: slices.Clone(items)}
	var err error
	if l.block, err = ex.NewBlock(encode(items)); err != nil {
		ex.Fail(fmt.Errorf("copying a list of %d entries: %w", len(items), err))
		return nil
	}
	runtime.AddCleanup(l, ex.Discard, l.block)
	if len(c.all) == maxLists {
		c.all = slices.Delete(c.all, 0, 1)
	}
	c.all = append(c.all, l)
	return l
}

func (l *listCopy[T]) address() kernels.Address { return l.block.Address() }
