package cudnn

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"fspda/cuda/driver"
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

// A first run that loses the GPU, or in which the process ends, is not made again by later programs;
// one that fails otherwise is. A choice of the same key replaces what is known of its first run.
func TestAttempt(t *testing.T) {
	lost, broken := &driver.Error{Result: driver.LaunchFailed}, errors.New("broken")
	for _, c := range []struct {
		what  string
		first func() error
		again bool
	}{
		{"works", func() error { return nil }, true},
		{"fails", func() error { return broken }, true},
		{"loses the GPU", func() error { return fmt.Errorf("timing: %w", lost) }, false},
		{"ends the process", func() error { runtime.Goexit(); return nil }, false},
	} {
		open := func(dir string) *ChoiceCache { return &ChoiceCache{Dir: dir, GPU: "a GPU", Version: 1} }
		dir, copied, ended := t.TempDir(), t.TempDir(), make(chan bool)
		go func() {
			defer close(ended)
			_ = open(dir).Attempt("key", c.first)
		}()
		<-ended
		lines, err := ReadChoices(dir)
		if err := errors.Join(err, AddChoices(copied, lines)); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{dir, copied} {
			ran := false
			err := open(dir).Attempt("key", func() error { ran = true; return nil })
			if ran != c.again || errors.Is(err, ErrNoReturn) == c.again {
				t.Errorf("%s: run again %t, %v; want %t", c.what, ran, err, c.again)
			}
			open(dir).put("key", Choice{Fused: true})
			if open(dir).lost("key") {
				t.Errorf("%s: a choice does not replace it", c.what)
			}
		}
	}
	if err := (*ChoiceCache)(nil).Attempt("key", func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("without a cache: %v", err)
	}
}
