package traincmd

import (
	"runtime/debug"
	"testing"
)

func TestKeepTo(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	keepTo(keptFrom - 1)()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("a small run has a limit of %d bytes, want %d as before", got, before)
	}
	undo := keepTo(100 << 30)
	if got := debug.SetMemoryLimit(-1); got != 102<<30 {
		t.Errorf("a forecast of 100 GiB gives a limit of %d bytes, want 2 %% more", got)
	}
	undo()
	t.Setenv("GOMEMLIMIT", "1GiB")
	keepTo(100 << 30)
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("a limit of the user's own became %d bytes, want %d as before", got, before)
	}
}
