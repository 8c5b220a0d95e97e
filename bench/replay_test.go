package bench

import (
	"strings"
	"testing"
)

// Every experiment names its source, has printed values that are accuracies, and makes its runs at
// any scale, with the warm-up scaled.
func TestReplays(t *testing.T) {
	all, err := Replays()
	if err != nil || len(all) < 2 {
		t.Fatalf("%d experiments, %v", len(all), err)
	}
	for _, f := range all {
		if f.Source == "" || !f.HasPrinted() {
			t.Errorf("%s names no source, or has no printed value", f.ID)
		}
		for _, r := range f.Runs {
			if r.Printed != nil && !(*r.Printed > 10 && *r.Printed < 100) {
				t.Errorf("%s, %s: printed %g", f.ID, r.Name, *r.Printed)
			}
		}
		for _, share := range []float64{1, 0.1} {
			jobs, err := f.Jobs(Options{Scale: Scale{Share: share}})
			if err != nil || len(jobs) != len(f.Runs) {
				t.Fatalf("%s at scale %g: %d runs, %v", f.ID, share, len(jobs), err)
			}
			if w := jobs[0].Config.Warmup; w != 5*share {
				t.Errorf("%s at scale %g: %g epochs of warm-up", f.ID, share, w)
			}
		}
	}
	if _, err := FindReplay("relay-sgd"); err == nil || !strings.Contains(err.Error(), "did you mean relaysgd") {
		t.Errorf("a wrong name: %v", err)
	}
}
