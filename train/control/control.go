// Package control pauses runs.
package control

import (
	"context"
	"sync"
	"sync/atomic"
)

// Control pauses and resumes a run, and requests checkpoints. It never changes a result. To stop a
// run, cancel the context of Run. Make one with New; all methods are safe for concurrent use.
type Control struct {
	mu    sync.Mutex
	gate  atomic.Pointer[chan struct{}] // nil: the run is not paused
	over  bool                          // the run is stopping: no pause any more
	saves chan struct{}
}

// New makes a Control whose run is not paused.
func New() *Control { return &Control{saves: make(chan struct{}, 1)} }

// Pause makes each agent wait at the head of its next iteration. The wall time of the run goes on.
// A run that is stopping cannot be paused.
func (c *Control) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate.Load() == nil && !c.over {
		gate := make(chan struct{})
		c.gate.Store(&gate)
	}
}

// Resume ends a pause.
func (c *Control) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gate := c.gate.Swap(nil); gate != nil {
		close(*gate)
	}
}

// Paused tells whether the run is paused.
func (c *Control) Paused() bool { return c.gate.Load() != nil }

// Checkpoint requests a checkpoint at the first iteration that no agent has reached. A paused run
// makes it after Resume. Without a run folder nothing happens.
func (c *Control) Checkpoint() {
	select {
	case c.saves <- struct{}{}:
	default: // one is requested already
	}
}

// Release ends a pause: the run is stopping, and cannot be paused again.
func (c *Control) Release() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.Resume()
}

// Wait returns when the run is not paused, or when ctx ends.
func (c *Control) Wait(ctx context.Context) {
	if gate := c.gate.Load(); gate != nil {
		select {
		case <-*gate:
		case <-ctx.Done():
		}
	}
}

// Asked delivers requests for checkpoints.
func (c *Control) Asked() <-chan struct{} { return c.saves }
