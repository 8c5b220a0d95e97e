//go:build !linux

package fakegpu

// thread returns the same number for all threads: only programs for Linux open a GPU.
func thread() int { return 0 }
