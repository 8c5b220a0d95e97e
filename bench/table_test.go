package bench

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/metric"
)

// Where runs have a simulated network, a table says what an accuracy cost in its seconds; else it
// does not speak of time.
func TestTableOfTimes(t *testing.T) {
	plain, timed := train.Default(), train.Default()
	timed.Links = "wan.yaml"
	rows := []train.Row{{TestScores: metric.TestScores{TestAccAvg: 0.1}}, {Position: metric.Position{Iteration: 10},
		TestScores: metric.TestScores{TestAccAvg: 0.62}, Times: metric.Times{Time: 3.5}},
		{Position: metric.Position{Iteration: 20}, TestScores: metric.TestScores{TestAccAvg: 0.7},
			Times: metric.Times{Time: 9}}}
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

// Titles do not end cells of a table in Markdown.
func TestTitlesInTables(t *testing.T) {
	o := &Outcome{Job: Job{Title: "a|b\n<c>", Config: train.Default()}, Status: train.Finished, Rows: []train.Row{{}}}
	var md strings.Builder
	table := &Table{Accounting: "packed", Levels: []float64{0.5}, Outcomes: []*Outcome{o}}
	if err := table.WriteMarkdown(&md); err != nil || strings.Count(md.String(), `| a\|b &lt;c> |`) != 2 {
		t.Errorf("%v\n%s", err, md.String())
	}
}

// The table in CSV tells how many runs have reached an accuracy: its mean is over these.
func TestTableOfSomeRuns(t *testing.T) {
	run := func(seed uint64, accuracy float64) *Outcome {
		c := train.Default()
		c.Seed = seed
		rows := []train.Row{{TestScores: metric.TestScores{TestAccAvg: 0.1}},
			{Position: metric.Position{Iteration: 10},
				TestScores: metric.TestScores{TestAccAvg: train.Num(accuracy)}}}
		return &Outcome{Job: Job{Title: "near", Setting: "near", Config: c}, Status: train.Finished, Rows: rows}
	}
	var text strings.Builder
	table := &Table{Accounting: "packed", Levels: []float64{0.5},
		Outcomes: []*Outcome{run(1, 0.7), run(2, 0.3), run(3, 0.8)}}
	if err := table.WriteCSV(&text); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	if err != nil || len(lines) != 2 {
		t.Fatal(err, lines)
	}
	at := slices.Index(lines[0], "bits_to_50%_mean_model_runs")
	if at < 0 || lines[1][at] != "2" || lines[0][at-1] != "bits_to_50%_mean_model_std" {
		t.Errorf("%q", lines)
	}
}
