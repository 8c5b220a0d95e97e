//go:build !linux && !darwin

package sharedmem

import "errors"

// File stands for memory that other processes can map, which this system does not support.
type File struct{}

// Open returns an error.
func Open() (*File, error) {
	return nil, errors.New("sharedmem: this system passes no memory between processes: use Linux or macOS")
}

// Fd returns no descriptor.
func (*File) Fd() int { return -1 }

// Floats returns ordinary memory.
func (*File) Floats(n int) ([]float32, error) { return make([]float32, n), nil }

// Find finds nothing.
func (*File) Find([]float32) (Region, bool) { return Region{}, false }
