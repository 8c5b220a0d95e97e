package web

import (
	"testing"
	"time"
)

// processorTime measures processor time, not wall time.
func TestProcessorTime(t *testing.T) {
	if slept := processorTime(func() { time.Sleep(30 * time.Millisecond) }); slept > 20*time.Millisecond {
		t.Errorf("sleep took %v of processor time, want less than 20 ms", slept)
	}
	sum := 0
	if worked := processorTime(func() {
		for k := range 30_000_000 {
			sum += k
		}
	}); worked < time.Millisecond || sum == 0 {
		t.Errorf("work took %v, want at least 1 ms", worked)
	}
}
