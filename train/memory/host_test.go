package memory

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"fspda/train/config"
)

// The forecast counts messages: one of K-GT holds two whole vectors, one of FSPDA-STORM two of its
// mask.
func TestMemoryOfMessages(t *testing.T) {
	for name, want := range map[string]func(s *config.Setup) int{
		"fspda-sa":    func(s *config.Setup) int { return s.Mask.Len() },
		"fspda-storm": func(s *config.Setup) int { return 2 * s.Mask.Len() },
		"led":         func(s *config.Setup) int { return s.Dim },
		"kgt":         func(s *config.Setup) int { return 2 * s.Dim },
	} {
		c := small()
		c.Algo, c.EvalPoints = name, 3
		s, _ := resolve(t, c)
		if got := messageVectors(s).numbers(); got != want(s) {
			t.Errorf("%s: %d values on their way, want %d", name, got, want(s))
		}
		if rest := host(s, nil) - vectorMemory(s) - batchMemory(s) - evaluationMemory(s, false) -
			writerMemory(s) - ProgramBytes(s); rest != 4*uint64(c.Agents)*uint64(want(s)) {
			t.Errorf("%s: %d bytes beyond the agents", name, rest)
		}
	}
}

// Small programs take memory for each agent and each worker of an evaluation, large ones share that
// of the largest, once for each that the threads can run.
func TestProgramBytes(t *testing.T) {
	c := small()
	for _, test := range []struct {
		threads         int
		gradient, score uint64
		want            uint64
	}{
		{1, 1000, 300, 5*1000 + 300},
		{2, 1000, 300, 5*1000 + 2*300},
		{1, 30 << 20, 300, 30<<20 + 300},
		{2, 30 << 20, 6 << 20, 2 * 30 << 20},
		{2, 6 << 20, 30 << 20, 2 * 30 << 20},
		{10, 30 << 20, 6 << 20, 5 * 30 << 20}, // programs of two threads
		{2, 1000, 6 << 20, 5*1000 + 2*6<<20},
	} {
		c.Threads = test.threads
		s, _ := resolve(t, c)
		s.Programs = config.ProgramBytes{Gradient: test.gradient, Score: test.score}
		if got := ProgramBytes(s); got != test.want {
			t.Errorf("%d threads, programs of %d and %d bytes: %d bytes, want %d", test.threads, test.gradient,
				test.score, got, test.want)
		}
	}
}

// The forecast for a process contains what it has in memory, and Go's part of that.
func TestProcess(t *testing.T) {
	s, _ := resolve(t, small())
	held := make([]byte, 64<<20)
	for i := 0; i < len(held); i += 4096 {
		held[i] = 1
	}
	with := Process(s)
	r := resident()
	if r.runtime < 64<<20 || r.process < r.runtime/2 || with < r.process+host(s, nil) {
		t.Errorf("a process of %d bytes, %d of them of Go's, has the forecast %d", r.process, r.runtime, with)
	}
	runtime.KeepAlive(held)
	if without := Process(s); with-without < 60<<20 || with-without > 70<<20 {
		t.Errorf("64 MiB raise the forecast by %d bytes", int64(with-without))
	}
	r = resident()
	outside := r.process - min(r.process, r.runtime) + otherGrowth
	for forecast, less := range map[uint64]uint64{1 << 30: outside, 1: 0, 100: 50} {
		if got, want := Limit(forecast), int64(forecast-less); got < want-4<<20 || got > want+4<<20 || got <= 0 {
			t.Errorf("a forecast of %d bytes gives the limit %d, want about %d", forecast, got, want)
		}
	}
}

// 10,000 agents of the network of figure 1 that all exchange took 6.95 GB, of which the program with
// its data took 0.1. The forecast is that and at most a tenth more.
func TestMemoryOfManyAgents(t *testing.T) {
	c := small()
	c.Hidden, c.Agents, c.Batch, c.Sampling, c.Partition = config.Widths{100}, 10_000, 32, "iid", "shuffled"
	c.Edges, c.EvalPoints, c.EvalAgents, c.Metrics, c.Density = "matching", 1, 1, "test", 0.1
	c.Checkpoint, c.Threads, c.Iterations = 0, 2, 3
	s, _ := resolve(t, c)
	if s.Dim != 79510 {
		t.Fatalf("the network has %d parameters", s.Dim)
	}
	if got := float64(host(s, nil)) / 1e9; got < 6.85 || got > 1.1*6.85 {
		t.Errorf("the forecast is %.2f GB, want 6.85 to 7.54", got)
	}
}

func TestTooManyAgents(t *testing.T) {
	if _, ok := Free(); !ok {
		t.Skip("this system does not say how much memory is free")
	}
	s, _ := resolve(t, small())
	s.Dim = 1 << 45
	var ce *config.Error
	if err := Check(s); !errors.As(err, &ce) || !strings.Contains(err.Error(), "fewer agents") {
		t.Errorf("error %v", err)
	}
	if s, _ := resolve(t, small()); Check(s) != nil {
		t.Error(Check(s))
	}
}

// An average of weights is a vector of an agent and of its two snapshots.
func TestMemoryOfAverages(t *testing.T) {
	c := small()
	plain, _ := resolve(t, c)
	c.Average = "ema(0.99)"
	averaged, _ := resolve(t, c)
	more := agentVectors(averaged)[averaged.Dim] - agentVectors(plain)[plain.Dim]
	if want := 3; more != want {
		t.Errorf("%d vectors more, want %d", more, want)
	}
}
