package evaluate

import (
	"errors"
	"testing"
)

// A picture that cannot be read is told of although a stop ends the other evaluations at that
// moment.
func TestJoinedTellsOfFaults(t *testing.T) {
	fault := errors.New("a picture cannot be read")
	if err := joined([]error{ErrInterrupted, nil, fault, ErrInterrupted}); !errors.Is(err, fault) ||
		errors.Is(err, ErrInterrupted) {
		t.Errorf("with a fault: %v", err)
	}
	if err := joined([]error{nil, ErrInterrupted}); !errors.Is(err, ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	if err := joined([]error{nil, nil}); err != nil {
		t.Errorf("nothing went wrong: %v", err)
	}
}
