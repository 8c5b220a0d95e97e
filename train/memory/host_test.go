package memory

import (
	"errors"
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

func TestTooManyAgents(t *testing.T) {
	if _, ok := freeMemory(); !ok {
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
