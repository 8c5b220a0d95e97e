package web

import (
	"testing"
	"time"
)

// What is charged is processor time, not time that passed.
func TestProcessorTime(t *testing.T) {
	if slept := processorTime(func() { time.Sleep(30 * time.Millisecond) }); slept > 20*time.Millisecond {
		t.Errorf("sleep took %v of a processor", slept)
	}
	sum := 0
	if worked := processorTime(func() {
		for k := range 30_000_000 {
			sum += k
		}
	}); worked < time.Millisecond || sum == 0 {
		t.Errorf("work took %v", worked)
	}
}
