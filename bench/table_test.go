package bench

import (
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/evaluate"
)

// Where runs have a simulated network, a table says what an accuracy cost in its seconds; else it
// does not speak of time.
func TestTableOfTimes(t *testing.T) {
	plain, timed := train.Default(), train.Default()
	timed.Links = "wan.yaml"
	rows := []train.Row{{TestScores: evaluate.TestScores{TestAccAvg: 0.1}}, {Position: evaluate.Position{Iteration: 10},
		TestScores: evaluate.TestScores{TestAccAvg: 0.62}, Times: evaluate.Times{Time: 3.5}},
		{Position: evaluate.Position{Iteration: 20}, TestScores: evaluate.TestScores{TestAccAvg: 0.7},
			Times: evaluate.Times{Time: 9}}}
	a := &Outcome{Job: Job{Title: "near", Config: plain}, Status: train.Finished, Rows: rows}
	b := &Outcome{Job: Job{Title: "far", Config: timed}, Status: train.Finished, Rows: rows}
	write := func(outcomes ...*Outcome) (markdown, csv string) {
		var md, c strings.Builder
		table := &Table{Accounting: "packed", Levels: []float64{0.5, 0.9}, Outcomes: outcomes}
		if err := table.WriteMarkdown(&md); err != nil {
			t.Fatal(err)
		}
		if err := table.WriteCSV(&c); err != nil {
			t.Fatal(err)
		}
		return md.String(), c.String()
	}
	md, csv := write(a, b)
	if !strings.Contains(md, "| far | 2.69 | – | 9 |") || strings.Contains(md, "| near | 2.69") {
		t.Error(md)
	}
	if !strings.Contains(csv, "virtual_time,virtual_time_to_50%_mean_model,virtual_time_to_90%_mean_model,wall_s") ||
		!strings.Contains(csv, ",9,2.69231,,0") {
		t.Error(csv)
	}
	if md, csv := write(a); strings.Contains(md+csv, "virtual_time") || strings.Contains(md, "Seconds") {
		t.Error("times of a run that has none")
	}
}
