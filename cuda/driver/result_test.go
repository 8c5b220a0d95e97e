package driver

import "testing"

// Results that the driver documents as the end of a process's work on the GPU are sticky, others
// are not: a limit on peers or registered memory harms nothing.
func TestSticky(t *testing.T) {
	for _, r := range []Result{4, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999} {
		if !r.Sticky() {
			t.Errorf("%d is not sticky", r)
		}
	}
	for _, r := range []Result{Success, InvalidValue, OutOfMemory, NoBinary, NotReady, LaunchOutOfResources, 704, 705,
		708, 711, 712, 713, CooperativeLaunchTooLarge, NotSupported, CaptureUnsupported} {
		if r.Sticky() {
			t.Errorf("%d is sticky", r)
		}
	}
}
