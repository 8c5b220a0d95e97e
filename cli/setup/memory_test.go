package setup

import (
	"runtime/debug"
	"testing"
)

func TestLimitMemory(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	LimitMemory(limitedFrom-1, "resnet20")()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("a small run sets a limit of %d bytes, want %d, unchanged", got, before)
	}
	undo := LimitMemory(200<<20, "mlp")
	less := func(limit int64) bool { // by the pages of the program, of which more are read meanwhile
		got, want := debug.SetMemoryLimit(-1), limit-int64(filePages())
		return got >= want && got < want+16<<20
	}
	if !less(212 << 20) {
		t.Errorf("an exact forecast of 200 MiB gives a limit of %d bytes, want 12 MiB more, less %d of the program",
			debug.SetMemoryLimit(-1), filePages())
	}
	undo()
	undo = LimitMemory(200<<20, "gpt-nano")
	if !less(200 << 20) {
		t.Errorf("a language model with a forecast of 200 MiB gets a limit of %d bytes, want it less %d of the program",
			debug.SetMemoryLimit(-1), filePages())
	}
	undo()
	undo = LimitMemory(100<<30, "resnet50")
	if !less(102 << 30) {
		t.Errorf("a forecast of 100 GiB gives a limit of %d bytes, want 2 %% more", debug.SetMemoryLimit(-1))
	}
	undo()
	t.Setenv("GOMEMLIMIT", "1GiB")
	LimitMemory(100<<30, "mlp")
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("a limit set by the user became %d bytes, want %d, unchanged", got, before)
	}
}
