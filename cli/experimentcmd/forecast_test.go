package experimentcmd

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/train"
)

// The forecast of runs is said once, and nobody is asked where nobody can answer.
func TestForecastOfRuns(t *testing.T) {
	c := train.Default()
	c.Iterations, c.EvalPoints, c.DataTrain, c.DataTest = 2_000_000_000, 1, 200, 50
	var said strings.Builder
	pipe, _, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	f := &forecast{open: newOpener(), stdin: pipe, stderr: &said}
	runs := []bench.Unfinished{{Config: c}, {Config: c, From: 1000}}
	for range 2 {
		if err := f.before(context.Background(), runs); err != nil {
			t.Fatal(err)
		}
	}
	if got := said.String(); strings.Count(got, "for 2 runs on this machine") != 1 || strings.Contains(got, "y/n") ||
		!strings.Contains(got, " h ") && !strings.Contains(got, "days") && !strings.Contains(got, "years") {
		t.Errorf("said %q", got)
	}
	for answer, want := range map[string]error{"y\n": nil, "Yes": nil, "n\n": command.ErrStopped,
		"": command.ErrStopped} {
		if err := f.ask(strings.NewReader(answer)); !errors.Is(err, want) {
			t.Errorf("answer %q: %v", answer, err)
		}
	}
	if !strings.Contains(said.String(), "nothing was started") {
		t.Errorf("said %q", said.String())
	}
}
