package cudnn

import (
	"errors"
	"testing"
)

// A choice is measured once, and stored unless the measurement was not possible or failed.
func TestChoose(t *testing.T) {
	dir, measured := t.TempDir(), 0
	choose := func(made Choice, fails error) (Choice, error) {
		c := &ChoiceCache{Dir: dir, GPU: "a GPU", Version: 1}
		return c.Choose("key", func() (Choice, error) { measured++; return made, fails })
	}
	broken := errors.New("broken")
	for i, c := range []struct {
		made     Choice
		fails    error
		want     Choice
		measured int
	}{
		{Choice{}, errors.Join(ErrNotMeasured, broken), Choice{}, 1},
		{Choice{}, broken, Choice{}, 2},
		{Choice{Why: "it differs", Beside: 2}, nil, Choice{Why: "it differs", Beside: 2}, 3},
		{Choice{Fused: true}, nil, Choice{Why: "it differs", Beside: 2}, 3},
	} {
		got, err := choose(c.made, c.fails)
		fails := c.fails != nil && !errors.Is(c.fails, ErrNotMeasured)
		if got != c.want || measured != c.measured || (err != nil) != fails {
			t.Errorf("%d: %+v, %v, measured %d times; want %+v, %d times", i, got, err, measured, c.want, c.measured)
		}
	}
}
