//go:build !linux

package web

import "time"

// processorTime calls work and returns the time it took, which is never less than its processor
// time.
func processorTime(work func()) time.Duration {
	begin := time.Now()
	work()
	return time.Since(begin)
}
