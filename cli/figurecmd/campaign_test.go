package figurecmd

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"fspda/bench"
	"fspda/data"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/evaluate"
)

// The lines of a campaign have the rate and the time left of train: images a second between the
// latest evaluations, and the time of iterations with their evaluations. A run says what is before
// it when it begins, and is heard of within a minute.
func TestStatusLines(t *testing.T) {
	c := train.Config{LengthKeys: config.LengthKeys{Iterations: 1000}}
	s := &train.Setup{Config: c, Division: data.Division{Set: &data.Set{Train: data.Split{Labels: make([]int32, 600)}}}}
	var out bytes.Buffer
	b := newStatusLines(&out, []bench.Job{{Name: "sa", Config: c}})
	s.Warnings = []string{"the gossip may diverge"}
	b.on(bench.Event{Kind: bench.Started, Setup: s, Memory: 5_350_000_000})
	b.state[0].said = time.Now().Add(-2 * earlyLines) // a first tenth that takes long
	b.on(bench.Event{Kind: bench.Stepped, Iteration: 1, Setup: s})
	for k := range 3 {
		row := train.Row{Position: evaluate.Position{Iteration: 200 * k, Epoch: train.Num(k)},
			Times: evaluate.Times{WallS: train.Num(10 * k)}}
		b.on(bench.Event{Kind: bench.Evaluated, Iteration: 200 * k, Row: row, Setup: s})
		b.on(bench.Event{Kind: bench.Stepped, Iteration: 200*k + 1, Setup: s})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[4], "40 %  60 images/s, 30.0 s left") ||
		lines[0] != "sa  begins: 1000 iterations, 1 evaluations, about 5.35 GB of memory" ||
		lines[1] != "sa  warning: the gossip may diverge" || !strings.Contains(lines[2], " 0 %") {
		t.Errorf("%q", lines)
	}
}
