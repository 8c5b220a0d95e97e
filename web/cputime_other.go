//go:build !linux

package web

import "time"

// processorTime calls work and returns the wall time that it took, an upper bound of its processor
// time.
func processorTime(work func()) time.Duration {
	begin := time.Now()
	work()
	return time.Since(begin)
}
