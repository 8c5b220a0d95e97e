package cuda

import (
	"strings"
	"testing"
	"time"

	"fspda/cuda/driver/fakegpu"
)

// A launch that does not end is told of, and closing the device does not wait for it.
func TestStuck(t *testing.T) {
	d, _ := imaginary(t, fakegpu.Options{Takes: 50 * time.Millisecond}, false)
	err := d.owner.ask(func() error { return d.owner.reachWithin(time.Millisecond) })
	if err == nil || !strings.Contains(err.Error(), LaunchesVariable) {
		t.Errorf("%v, want an error that says what to do", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}
