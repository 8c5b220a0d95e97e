package cuda

import (
	"strings"
	"testing"
	"time"

	"fspda/cuda/driver/fakegpu"
)

// A launch that does not end is told of, and closing the device does not wait for it.
func TestHungLaunch(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{EventDelay: 50 * time.Millisecond}, false)
	err := d.exec.do(func() error { return d.exec.syncWithin(time.Millisecond) })
	if err == nil || !strings.Contains(err.Error(), SeparateLaunchesVariable) {
		t.Errorf("%v, want an error that says what to do", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}
