package train

import (
	"runtime"
	"testing"

	"fspda/cpu"
	"fspda/train/memory"
)

// The agents take the memory of the forecast, to within a quarter.
func TestMemoryForecast(t *testing.T) {
	for _, name := range []string{"fspda-sa", "fspda-storm", "kgt", "sgd"} {
		t.Run(name, func(t *testing.T) { checkForecast(t, name) })
	}
}

func checkForecast(t *testing.T, name string) {
	c := small()
	c.Algo = name
	c.Agents, c.Graph, c.Hidden, c.Batch, c.Iterations, c.EvalPoints, c.Partition = 8, "ring", Widths{300}, 48, 20, 2,
		"shuffled"
	s, m := resolve(t, c)
	// a device whose allocator is empty
	r := newRun(s, Options{Device: cpu.New(), Model: m})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.agents {
		defer a.gradients.loader.Close()
		if err := a.gradients.take(); err != nil { // now the loader has allocated all batches
			t.Fatal(err)
		}
		defer a.release()
	}
	runtime.ReadMemStats(&after)
	got, want := float64(after.TotalAlloc-before.TotalAlloc), float64(memory.AgentBytes(s))
	const slab = 18 << 20 // that the device allocates before it is needed
	if got < 0.75*want || got > 1.25*want+slab {
		t.Errorf("the agents took %.0f bytes, the forecast is %.0f", got, want)
	}
	runtime.KeepAlive(r)
}
