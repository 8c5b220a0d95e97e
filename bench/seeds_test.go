package bench

import (
	"context"
	"encoding/csv"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/train"
	"fspda/train/metric"
)

func TestSeeds(t *testing.T) {
	for text, want := range map[string]string{"3": "1,2,3", "1": "1", "1,5,9": "1,5,9", " 7, " +
		"2": "7,2", "0": "", "-1": "",
		"1001": "", "2,2": "", "a": "", "1,": ""} {
		var s Seeds
		if err := s.Set(text); (err == nil) != (want != "") || s.String() != want {
			t.Errorf("%s: %q, %v; want %q", text, s, err, want)
		}
	}
	for text, want := range map[string]string{"3": "1,2,3", "[4]": "4", "[]": "",
		"[1, 18446744073709551615]": "1,18446744073709551615", "[1.5]": "", "{a: 1}": "", "0": ""} {
		s, err := experiment(t, "grid: {alpha: [0.1]}\nseeds: "+text+"\n")
		if (err == nil) != (want != "") || err == nil && s.Search.Seeds.String() != want {
			t.Errorf("%s: %v, %v; want %q", text, s, err, want)
		}
	}
	refuses(t, map[string]string{
		"{base: {seed: 4}, grid: {alpha: [0.1]}, seeds: 2}":       "seeds 1,2 are set too",
		"{grid: {alpha: [0.1], seed: [4]}, seeds: 2}":             "grid or random has the key seed too",
		"{grid: {alpha: [0.1]}, halving: {at: [0.5, 0.25]}}":      "ascending shares",
		"{grid: {alpha: [0.1]}, halving: {keep: 1}}":              "above 0 and below 1",
		"{grid: {alpha: [0.1]}, metric: bits_to(90)}":             "an accuracy above 0 and at most 1",
		"{grid: {alpha: [0.1]}, metric: bites_to(0.9)}":           "bits_to(0.9)",
		"{grid: {alpha: [0.1]}, metric: 'iterations_to(0.9'}":     "an accuracy above 0 and at most 1",
		"{grid: {alpha: [0.1]}, metric: test_acc_avgg, seeds: 2}": "did you mean test_acc_avg?",
	})
}

// rowAt is an evaluation.
func rowAt(iteration int, acc float64, bits uint64, wall float64) train.Row {
	return train.Row{Position: metric.Position{Iteration: iteration}, TestScores: metric.TestScores{
		TestAccAvg: train.Num(acc)}, Traffic: metric.Traffic{BitsSharedSeed: bits},
		Times: metric.Times{WallS: train.Num(wall)}}
}

// What an accuracy took is interpolated between two evaluations; without one before it is that of
// the evaluation itself.
func TestReach(t *testing.T) {
	rows := []train.Row{rowAt(0, 0.1, 0, 0), rowAt(10, 0.5, 100, 4), rowAt(20, 0.4, 200, 8), rowAt(30, 0.9, 300, 12)}
	nan := []train.Row{rowAt(0, math.NaN(), 0, 0), rowAt(10, 0.5, 100, 4)}
	bits := func(r train.Row) float64 { return float64(r.BitsSharedSeed) }
	for _, c := range []struct {
		rows           []train.Row
		level          float64
		at, resolution float64
		row            int
	}{{rows, 0.3, 50, 100, 1}, {rows, 0.5, 100, 100, 1}, {rows, 0.65, 250, 100, 3}, {rows, 0.1, 0, 0, 0},
		{rows, 0.95, math.NaN(), math.NaN(), -1}, {nan, 0.4, 100, 100, 1}, {nil, 0.4, math.NaN(), math.NaN(), -1}} {
		got := reach(c.rows, c.level, meanAccuracy, bits)
		if same := func(a,
			b float64) bool {
			return math.Abs(a-b) < 1e-9 || math.IsNaN(a) && math.IsNaN(b)
		}; !same(got.At,
			c.at) || !same(got.Resolution, c.resolution) ||
			got.Row != c.row {
			t.Errorf("%v: %+v, want %+v", c.level, got, c)
		}
	}
}

// The settings of a sweep are ranked by the mean over their seeds. Those that not all seeds of
// reach the accuracy come after those that all do, and times are compared with times of one kind
// only.
func TestRankSeeds(t *testing.T) {
	run := func(setting string, seed uint64, status train.Status, acc, virtual float64) *Outcome {
		c := train.Default()
		c.Seed = seed
		rows := []train.Row{rowAt(0, 0, 0, 0), rowAt(10, acc, 1000, 2)}
		rows[1].Time = train.Num(virtual)
		return &Outcome{Job: Job{Name: setting + "-seed", Setting: setting, Title: setting, Config: c}, Status: status,
			Rows: rows}
	}
	all := []*Outcome{run("half", 1, "finished", 0.5, 0), run("half", 2, "finished", 1, 0), nil,
		run("both", 1, "finished", 0.8, 0), run("both", 2, "finished", 0.9, 0), run("lost", 1, "diverged", 1, 0),
		run("lost", 2, "finished", 1, 0), run("low", 1, "finished", 0.1, 0), run("low", 2, "finished", 0.3, 0)}
	for metric, want := range map[string]string{
		"test_acc_avg":       "both 0.85±0.07071 half 0.75±0.3536 low 0.2±0.1414 lost 1±NaN",
		"bits_to(0.6)":       "both 708.3±58.93 half 600±NaN lost 600±NaN low NaN±NaN",
		"iterations_to(0.8)": "both 9.444±0.7857 half 8±NaN lost 8±NaN low NaN±NaN",
		"time_to(0.1)":       "both 0.2361±0.01964 half 0.3±0.1414 low 1.333±0.9428 lost 0.2±NaN",
	} {
		s, err := experiment(t, "{grid: {alpha: [0.1]}, metric: '"+metric+"', seeds: 2}")
		if err != nil {
			t.Fatal(err)
		}
		ranked, err := s.Rank(Budget{}, all)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, r := range ranked {
			value := func(v float64) string {
				if math.IsNaN(v) {
					return "NaN"
				}
				return plain(digits(v))
			}
			words = append(words, r.Setting.Name+" "+value(r.Value)+"±"+value(r.Deviation))
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s, want %s", metric, got, want)
		}
		var md, table strings.Builder
		if err := errors.Join(s.Search.WriteRanking(&md, ranked, false),
			s.Search.WriteRanking(&table, ranked, true)); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(table.String(), "resolution"); has != strings.Contains(metric, "_to") ||
			!strings.Contains(md.String(), "| std | runs |") ||
			!strings.Contains(table.String(), "\"1 finished, 1 diverged\"") {
			t.Errorf("%s\n%s", md.String(), table.String())
		}
	}
	s, err := experiment(t, "{grid: {alpha: [0.1]}, metric: 'time_to(0.1)'}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rank(Budget{}, append(all, run("virtual", 1, "finished", 0.7, 30))); err == nil ||
		!strings.Contains(err.Error(), "some of the runs have virtual time") {
		t.Errorf("error %v", err)
	}
}

// Runs that were read from folders belong to one setting if they differ in their seeds only, or if
// one command named them so; two runs of one seed never do.
func TestSettings(t *testing.T) {
	run := func(folder string, seed uint64, alpha float64) *Outcome {
		c := train.Default()
		c.Seed, c.Alpha = seed, alpha
		return &Outcome{Job: Job{Name: folder, Title: folder, Config: c}, Folder: folder}
	}
	var got []string
	for _, s := range Settings([]*Outcome{run("a", 1, 0.1), run("b", 2, 0.1), run("c", 1, 0.2), run("d", 1, 0.1),
		run("sa-seed-1", 1, 0.5), run("sa-seed-2", 2, 0.6), run("sb-seed-3", 3, 0.7)}) {
		got = append(got, s.Label())
	}
	if want := []string{"a (2 seeds)", "c", "d", "sa (2 seeds)", "sb-seed-3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A table of several seeds has means and standard deviations, and says how many runs got there; an
// accuracy in the tidy file is that of one evaluation of one run.
func TestTableOfSeeds(t *testing.T) {
	run := func(seed uint64, algo string, acc float64) *Outcome {
		c := train.Default()
		c.Seed, c.Algo = seed, algo
		return &Outcome{Job: Job{Name: algo + "-seed", Setting: algo, Title: algo, Config: c}, Status: train.Finished,
			Rows: []train.Row{rowAt(0, 0.1, 0, 0), rowAt(10, acc, 1000, 1)}}
	}
	all := []*Outcome{run(1, "dsgd", 0.6), run(2, "dsgd", 0.8), run(3, "dsgd", 0.4), run(1, "sgd", 0.9)}
	table := &Table{Accounting: "shared-seed", Levels: []float64{0.5, 0.99}, Outcomes: all}
	var md, c, js, tidy strings.Builder
	if err := errors.Join(table.WriteMarkdown(&md), table.WriteCSV(&c), table.WriteJSON(&js),
		WriteTidy(&tidy, all)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| dsgd (3 seeds) |", "60.00 % ± 20.00 %", "686 bit ± 162 bit (2 of 3) / –",
		"means ± sample standard deviations", "are 1 kbit apart"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, md.String())
		}
	}
	if head, _, _ := strings.Cut(c.String(), "\n"); !strings.Contains(head,
		"status,failed_to_converge,runs,iterations,") ||
		!strings.Contains(c.String(), ",0.6,0.2,") {
		t.Error(c.String())
	}
	if !strings.Contains(js.String(), `"test_acc_avg_std": 0.2`) {
		t.Error(js.String())
	}
	lines, err := csv.NewReader(strings.NewReader(tidy.String())).ReadAll()
	if err != nil || len(lines) != 9 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if want := []string{"run", "setting", "seed", "algo", "status", "iteration"}; !slices.Equal(lines[0][:6], want) ||
		!slices.Equal(lines[4][:6], []string{"dsgd-seed", "dsgd", "2", "dsgd", "finished", "10"}) {
		t.Errorf("%q\n%q", lines[0], lines[4])
	}
}

// Successive halving makes the full runs of the better settings only, the rest up to where they
// were given up; the same command takes it up where it was stopped, and a run that went on has the
// numbers of one that was never stopped.
func TestHalving(t *testing.T) {
	text := "{base: {algo: dsgd, data_train: 300, data_test: 50, hidden: [4], agents: 4, batch: 8, iterations: 40, " +
		"eval_points: 8, density: 1}, grid: {alpha: [0.000001, 0.2, 0.00001, 0.4]}, seeds: 2, metric: " +
		"train_loss_avg, " +
		"halving: {at: [0.2, 0.5]}}"
	s, err := experiment(t, text)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := s.Jobs(Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{}
	dir := t.TempDir()
	c := &Campaign{Folder: filepath.Join(dir, "halving"), Jobs: jobs, Parallel: 2, Open: l.open, Once: true}
	ctx, stop := context.WithCancel(context.Background())
	c.OnEvent = func(e Event) {
		if e.Kind == Evaluated && e.Job > 2 {
			stop()
		}
	}
	if _, err := s.Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	stop()
	c.OnEvent = nil
	outcomes, err := s.Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	ranked, err := s.Rank(s.Search.Budgets[0], outcomes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range ranked {
		last := r.Setting.Outcomes[1].Last().Iteration
		got = append(got, strings.TrimPrefix(r.Setting.Title, "alpha=")+" "+r.Setting.status()+" "+plain(float64(last)))
		_, err := os.Stat(filepath.Join(r.Setting.Outcomes[1].Folder, "summary.json"))
		if (err == nil) != (last == 40) {
			t.Errorf("%s: %v", r.Setting.Name, err)
		}
	}
	want := []string{"0.4 finished 40", "0.2 given up at 50 % 20", "1e-05 given up at 20 % 10",
		"1e-06 given up at 20 % 10"}
	for i := range got {
		got[i] = strings.ReplaceAll(strings.ReplaceAll(got[i], "0.000001", "1e-06"), "0.00001", "1e-05")
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	whole := &Campaign{Folder: filepath.Join(dir, "whole"), Jobs: jobs[6:7], Open: l.open}
	if _, err := whole.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a, b := lines(t, ranked[0].Folder), lines(t, filepath.Join(whole.Folder, jobs[6].Name)); !slices.Equal(a, b) {
		t.Errorf("a run that passed %v differs:\n%s\n%s", s.Search.Halving.At, a, b)
	}
	again := 0
	c.OnEvent = func(e Event) {
		if again++; e.Kind != AlreadyDone {
			t.Errorf("event %+v of a sweep that is done", e)
		}
	}
	if _, err := s.Run(context.Background(), c); err != nil || again == 0 {
		t.Error(err)
	}
}
