package setup

import (
	"runtime/debug"
	"testing"

	"fspda/train/memory"
)

func TestLimitMemory(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	for _, test := range []struct {
		forecast uint64
		network  string
		want     int64
	}{
		{200 << 20, "mlp", 200 << 20},
		{200 << 20, "gpt-nano", 200 << 20},
		{200 << 20, "resnet20", 200 << 20},
		{100 << 30, "gpt-nano", 100 << 30},
		{100 << 30, "resnet50", 102 << 30},
	} {
		undo := LimitMemory(func() uint64 { return test.forecast }, test.network)
		want := memory.Limit(uint64(test.want)) // pages of the program are read meanwhile
		if got := debug.SetMemoryLimit(-1); got < want-16<<20 || got > want+16<<20 {
			t.Errorf("%s: a forecast of %d bytes gives a limit of %d, want about %d", test.network, test.forecast, got,
				want)
		}
		undo()
		if got := debug.SetMemoryLimit(-1); got != before {
			t.Errorf("%s: a limit of %d bytes is left, want %d", test.network, got, before)
		}
	}
	t.Setenv("GOMEMLIMIT", "1GiB")
	LimitMemory(func() uint64 { t.Error("the forecast is computed"); return 100 << 30 }, "mlp")
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("a limit set by the user became %d bytes, want %d, unchanged", got, before)
	}
}
