package traincmd

import (
	"errors"
	"fmt"
	"testing"

	"fspda/dist/link"
	"fspda/train"
)

// An agent that has left joins again in the same process, unless the one that has left still
// computes there.
func TestNextLife(t *testing.T) {
	m := &oneAgent{life: 2}
	for _, c := range []struct {
		err   error
		life  int
		again bool
	}{
		{train.ErrDropped, 3, true},
		{fmt.Errorf("agent: %w", &link.LifeError{Life: 5}), 5, true},
		{train.ErrMoved, 2, true},
		{errors.New("the disk is full"), 0, false},
		{fmt.Errorf("%w; %w", train.ErrDropped, errHung), 0, false},
		{fmt.Errorf("%w; %w", &link.LifeError{Life: 5}, errHung), 0, false},
	} {
		if life, again := m.nextLife(c.err); life != c.life || again != c.again {
			t.Errorf("after %v: life %d, %t, want %d, %t", c.err, life, again, c.life, c.again)
		}
	}
}
