package experimentcmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fspda/bench"
	"fspda/data"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/metric"
)

// The lines of a campaign have the rate and the time left of train: images a second between the
// latest evaluations, and the time of iterations with their evaluations. A run says what is before
// it when it begins, and is heard of within a minute.
func TestStatusLines(t *testing.T) {
	c := train.Config{LengthKeys: config.LengthKeys{Iterations: 1000}}
	given := c
	given.Iterations = 30 // the run has those of its epochs
	s := &train.Setup{Config: config.Resolved{LengthKeys: c.LengthKeys}, Division: data.Division{
		Set: &data.Set{Train: data.Split{Labels: make([]int32, 600)}}}}
	var out bytes.Buffer
	b := newStatusLines(&out, []bench.Job{{Name: "sa", Config: given}})
	s.Warnings = []string{"the gossip may diverge"}
	b.on(bench.Event{Kind: bench.Started, Setup: s, Memory: 5_350_000_000})
	b.state[0].said = time.Now().Add(-2 * earlyLines) // a first tenth that takes long
	b.on(bench.Event{Kind: bench.Stepped, Iteration: 1, Setup: s})
	for k := range 3 {
		row := train.Row{Position: metric.Position{Iteration: 200 * k, Epoch: train.Num(k)},
			Times: metric.Times{WallS: train.Num(10 * k)}}
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

// Runs that differ in anything that a data set depends on do not share one.
func TestOpenerSets(t *testing.T) {
	dir := t.TempDir()
	text := []byte(strings.Repeat("To be, or not to be. ", 200))
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	c := train.Default()
	c.Data, c.DataDir, c.Model, c.Block, c.Tokenizer = "text", dir, "gpt-nano", 8, "char"
	o := newOpener()
	open := func(c train.Config) *data.Set {
		t.Helper()
		set, err := o.set(c)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	first := open(c)
	threads, bytes, longer := c, c, c
	threads.Threads, bytes.Tokenizer, longer.Block = 1, "byte", 16
	if open(threads) != first || open(c) != first {
		t.Error("a set is opened twice")
	}
	if set := open(bytes); set.Classes != 256 {
		t.Errorf("%d tokens of the tokenizer byte, want 256", set.Classes)
	}
	if set := open(longer); set == first {
		t.Error("windows of 16 tokens have the set of those of 8")
	}
}

// The partial table has a run once, with its latest numbers.
func TestPartialTable(t *testing.T) {
	p := &partialTable{folder: t.TempDir()}
	job := func(name string) bench.Job { return bench.Job{Name: name, Config: train.Default()} }
	row := func(loss float64) []train.Row {
		return []train.Row{{TrainScores: metric.TrainScores{TrainLossWorst: train.Num(loss)}}}
	}
	p.add(&bench.Outcome{Job: job("a"), Folder: "a", Rows: row(7)})
	p.add(&bench.Outcome{Job: job("b"), Folder: "b", Rows: row(6)})
	p.add(&bench.Outcome{Job: job("a"), Folder: "a", Rows: row(5)})
	text, err := os.ReadFile(filepath.Join(p.folder, "table.csv"))
	if p.err != nil || err != nil {
		t.Fatal(p.err, err)
	}
	if lines := strings.Count(string(text), "\n"); lines != 3 {
		t.Errorf("%d lines, want a heading and two runs:\n%s", lines, text)
	}
}
