package train

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/train/config"
)

// The forecast is the memory that the agents really take, within a quarter.
func TestMemoryForecast(t *testing.T) {
	for _, name := range []string{"fspda-sa", "fspda-storm", "kgt", "sgd"} {
		t.Run(name, func(t *testing.T) { checkForecast(t, name) })
	}
}

func checkForecast(t *testing.T, name string) {
	c := small()
	c.Algo = name
	c.Agents, c.Graph, c.Hidden, c.Batch, c.Iterations, c.EvalPoints, c.Partition = 8, "ring", Widths{300}, 48, 20, 2, "shuffled"
	s, m := resolve(t, c)
	// a device with nothing in reserve
	r := newRun(s, Options{Device: cpu.New(), Model: m})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := r.start(); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.agents {
		defer a.gradients.loader.Close()
		if err := a.gradients.take(); err != nil { // with one batch out the loader has made all of its batches
			t.Fatal(err)
		}
		defer a.release()
	}
	runtime.ReadMemStats(&after)
	got, want := float64(after.TotalAlloc-before.TotalAlloc), float64(agentsMemory(s))
	const slab = 18 << 20 // of which the device may not have cut anything yet
	if got < 0.75*want || got > 1.25*want+slab {
		t.Errorf("the agents took %.0f bytes, the forecast is %.0f", got, want)
	}
	runtime.KeepAlive(r)
}

// Messages count: one of K-GT holds two whole vectors, one of FSPDA-STORM two of its mask.
func TestMemoryOfMessages(t *testing.T) {
	for name, want := range map[string]func(s *Setup) int{
		"fspda-sa":    func(s *Setup) int { return s.Mask.Len() },
		"fspda-storm": func(s *Setup) int { return 2 * s.Mask.Len() },
		"led":         func(s *Setup) int { return s.Dim },
		"kgt":         func(s *Setup) int { return 2 * s.Dim },
	} {
		c := small()
		c.Algo, c.EvalPoints = name, 3
		s, _ := resolve(t, c)
		if got := messagesLength(s); got != want(s) {
			t.Errorf("%s: %d values on their way, want %d", name, got, want(s))
		}
		if rest := RunMemory(s) - agentsMemory(s) - evaluationMemory(s) - writerMemory(s) - programsMemory(s); rest != 4*uint64(c.Agents)*uint64(want(s)) {
			t.Errorf("%s: %d bytes beyond the agents", name, rest)
		}
	}
}

func TestTooManyAgents(t *testing.T) {
	if _, ok := freeMemory(); !ok {
		t.Skip("this system does not say how much memory is free")
	}
	s, _ := resolve(t, small())
	s.Dim = 1 << 45
	var ce *config.Error
	if err := CheckMemory(s); !errors.As(err, &ce) || !strings.Contains(err.Error(), "fewer agents") {
		t.Errorf("error %v", err)
	}
	if s, _ := resolve(t, small()); CheckMemory(s) != nil {
		t.Error(CheckMemory(s))
	}
}
