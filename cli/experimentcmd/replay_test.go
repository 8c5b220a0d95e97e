package experimentcmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"fspda/bench"
	"fspda/train"
)

// The comparison has the paper's value, ours, the difference, and what the whole run takes; a part
// of a run is said to be one.
func TestComparison(t *testing.T) {
	f, err := bench.FindReplay("relaysgd")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := f.Jobs(bench.Options{Scale: bench.Scale{Share: 0.1}, Only: []string{"dsgd-1", "sa-1"}})
	if err != nil {
		t.Fatal(err)
	}
	var made []*bench.Outcome
	for _, j := range jobs {
		var row train.Row
		row.Iteration, row.TestAccMean, row.WallS = j.Config.Iterations, 0.804, 360
		made = append(made, &bench.Outcome{Job: j, Rows: []train.Row{row}})
	}
	dir := t.TempDir()
	s := &study{flags: &flags{given: new(pflag.FlagSet), scale: bench.Scale{Share: 0.1}}, Experiment: f, folder: dir}
	if err := s.writeComparison(made, []string{"Seed 1.", "Changed in every run: model=mlp."}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "paper.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| DSGD, Dirichlet 1 | 87.40 | 80.40 | -7.00 (partial) | 10 % | 360 | 1.0 |",
		"| FSPDA-SA, Dirichlet 1 | – | 80.40 | – | 10 % | 360 | 1.0 |", "table 2",
		"Ours: Seed 1. Changed in every run: model=mlp."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, string(text))
		}
	}
}
