package cudnn

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"fspda/cuda/driver"
)

// A first run that loses the GPU, or in which the process ends, is not made again by later
// programs; one that fails otherwise is. A choice of the same key replaces what is known of its
// first run.
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
			open(dir).put("key", Choice{Product: true})
			if open(dir).lost("key") {
				t.Errorf("%s: a choice does not replace it", c.what)
			}
		}
	}
	if err := (*ChoiceCache)(nil).Attempt("key", func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("without a cache: %v", err)
	}
}
