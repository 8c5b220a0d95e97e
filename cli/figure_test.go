//go:build !windows

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/cli/command"
)

// tinyFigure returns the arguments of a figure that takes a second or two.
func tinyFigure(n, out string, more ...string) []string {
	return append([]string{"figure", n, "--scale", "0.0001", "--retune", "--data", "synthetic", "--set",
		"data_train=300", "--set", "data_test=50", "--set", "hidden=4",
		"--set", "batch=8", "--eval-points", "4", "--out", out}, more...)
}

func TestFigure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fig")
	status, stdout, stderr := call(t, tinyFigure("1", dir, "--jobs", "2", "--accounting", "reference")...)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	for _, word := range []string{"FSPDA-STORM 67 %", "CHOCO-SGD", "reference accounting", "worst squared gradient",
		"figure.html"} {
		if !strings.Contains(stdout, word) {
			t.Errorf("the table does not mention %q:\n%s", word, stdout)
		}
	}
	for _, word := range []string{"expected: Both FSPDA", "swarm", "finished in"} {
		if !strings.Contains(stderr, word) {
			t.Errorf("the progress does not mention %q:\n%s", word, stderr)
		}
	}
	for _, name := range []string{"figure.svg", "figure.png", "bits.svg", "bits.png", "figure.html", "table.md",
		"table.csv", "table.tex", "evaluations.csv", "caption.md", "sa/summary.json", "choco/report.html"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "bits.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"reference accounting", "Flavour released", "Scale 0.0001", "Retuned"} {
		if !bytes.Contains(svg, []byte(word)) {
			t.Errorf("the image does not say %q", word)
		}
	}
	status, _, stderr = call(t, tinyFigure("1", dir, "--accounting", "reference", "--threads", "1")...)
	if status != 0 || strings.Count(stderr, "already done") != 8 || strings.Contains(stderr, "finished in") {
		t.Errorf("the second call: status %d\n%s", status, stderr)
	}
	again := t.TempDir()
	if status, stdout, stderr := call(t, "plot", dir, "--format", "svg", "--out", again); status != 0 ||
		!strings.Contains(stdout, filepath.Join(again, "bits.svg")) {
		t.Errorf("plot of the folder: status %d\n%s%s", status, stdout, stderr)
	}
	for _, name := range []string{"figure.svg", "bits.svg"} {
		got, err := os.ReadFile(filepath.Join(again, name))
		want, err2 := os.ReadFile(filepath.Join(dir, name))
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("plot draws another %s than the figure, errors %v and %v", name, err, err2)
		}
	}
	status, _, stderr = call(t, tinyFigure("1", dir, "--format", "pdf", "--width", "6.9in", "--columns", "2",
		"--no-title",
		"--no-notes")...)
	pdf, err := os.ReadFile(filepath.Join(dir, "figure.pdf"))
	if status != 0 || err != nil || !bytes.Contains(pdf, []byte("/MediaBox [0 0 496.80 ")) {
		t.Errorf("as PDF of 6.9 inches: status %d, %v\n%s", status, err, stderr)
	}
	status, stdout, stderr = call(t, "table", dir, "--format", "latex")
	if status != 0 || strings.Count(stdout, `\begin{tabular}`) != 2 || !strings.Contains(stdout, `90 \%`) {
		t.Errorf("the table of a folder of runs: status %d\n%s%s", status, stdout, stderr)
	}
	for _, bad := range [][]string{{"--width", "6.9"}, {"--width", "2in", "--columns", "4"}, {"--format", "gif"},
		{"--columns", "-1"}} {
		if status, _, stderr := call(t, tinyFigure("1", dir, bad...)...); status != command.ExitBadInput ||
			!strings.Contains(stderr, "expected") {
			t.Errorf("%v: status %d\n%s", bad, status, stderr)
		}
	}
	status, _, stderr = call(t, tinyFigure("1", dir, "--seed", "2")...)
	if status != command.ExitBadInput || !strings.Contains(stderr, "another configuration") {
		t.Errorf("another seed in the same folder: status %d\n%s", status, stderr)
	}
}

// Ctrl-C stops a figure in order, and the same command resumes it with the same numbers.
func TestFigureInterrupted(t *testing.T) {
	t.Parallel() // it mostly waits
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	broken, whole := filepath.Join(t.TempDir(), "broken"), filepath.Join(t.TempDir(), "whole")
	slow := func(out string) []string {
		return tinyFigure("1", out, "--scale", "0.0004", "--only", "sa,led")
	}
	cmd := exec.Command(program, slow(broken)...)
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(broken, "sa", "metrics.jsonl")); err == nil && len(text) > 0 {
			break
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the status is looked at below
	if cmd.ProcessState.ExitCode() != command.ExitStopped || !strings.Contains(stderr.String(),
		"the same command resumes the runs in") {
		t.Fatalf("exit status %d\n%s", cmd.ProcessState.ExitCode(), stderr.String())
	}
	for _, out := range []string{broken, whole} {
		if status, _, stderr := call(t, slow(out)...); status != 0 {
			t.Fatalf("exit status %d\n%s", status, stderr)
		}
	}
	for _, run := range []string{"sa", "led"} {
		a, b := withoutTimes(t, filepath.Join(broken, run)), withoutTimes(t, filepath.Join(whole, run))
		if a != b {
			t.Errorf("%s differs after the interruption:\n%s\n%s", run, a, b)
		}
	}
}

func withoutTimes(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"(wall_s|checksum)":[^}]*`).ReplaceAllString(string(text), "")
}

func TestFigureList(t *testing.T) {
	t.Chdir(t.TempDir())
	status, stdout, stderr := call(t, "figure", "list", "--no-time")
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	for _, word := range []string{"mnist-main", "imagenet", "ResNet-50 on ImageNet", "expected: The graphs differ",
		"sa-sorted", "bug-compat"} {
		if !strings.Contains(stdout, word) {
			t.Errorf("the list does not mention %q:\n%s", word, stdout)
		}
	}
	if _, err := os.Stat(command.RunsDir); err == nil {
		t.Error("files remain after a list without times")
	}
}

// The figure of step sizes needs no run.
func TestFigureSchedule(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fig")
	if status, _, stderr := call(t, "figure", "9", "--out", dir); status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "figure.svg"))
	if err != nil || !bytes.Contains(svg, []byte("alpha against epoch")) || !bytes.Contains(svg, []byte("ends at 0.")) {
		t.Errorf("%v\n%.900s", err, svg)
	}
}

func TestFigureMistakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		word string
	}{
		{[]string{"figure"}, "the number or name of one figure"},
		{[]string{"figure", "11"}, "there are 1, mnist-main"},
		{[]string{"figure", "2"}, "data imagenet: no path given"},
		{[]string{"figure", "1", "--flavour", "publishd"}, "printed, released, bug-compat"},
		{[]string{"figure", "1", "--only", "strom"}, "did you mean storm"},
		{[]string{"figure", "1", "--jobs", "0"}, "at least 1"},
		{[]string{"figure", "1", "--set", "bach=3"}, `did you mean "batch"`},
		{[]string{"figure", "1", "--set", "batch"}, "key=value"},
		{[]string{"figure", "1"}, "no folder given"},
		{[]string{"figure", "1", "--data", "synthetic", "--set", "batch=100000"}, "run sa: batch 100000"},
		{[]string{"figure", "1", "--data", "synthetic", "--set", "batch=8", "--set", "kappa=0.1", "--scale", "0.0001",
			"--retune"}, "kappa 0.1: has no effect on any of the 8 runs: it needs algo next"},
		{[]string{"figure", "1", "--seed", "2", "--seeds", "2"}, "--seed and --seeds are both set"},
		{[]string{"figure", "1", "--seeds", "1,1"}, "nor a list of different seeds"},
		{[]string{"sweep"}, "-c is missing"},
		{[]string{"tune"}, "-c is missing"},
		{[]string{"figure", "methods", "--scale", "0.1"}, "figure methods has no --scale"},
		{[]string{"figure", "methods", "--only", "dsdg"}, "did you mean dsgd"},
		{[]string{"tune", "-c", "none.yaml"}, "none.yaml"},
		{[]string{"sweep", "-c", "none.yaml"}, "none.yaml"},
		{[]string{"compare"}, "expected the folders of runs to compare"},
		{[]string{"compare", "nowhere"}, "holds no run"},
		{[]string{"compare", "nowhere", "--reach", "-1"}, "such as 0.9"},
		{[]string{"compare", "nowhere", "--accounting", "packt"}, "did you mean packed"},
	} {
		t.Chdir(t.TempDir())
		status, _, stderr := call(t, c.args...)
		if status != command.ExitBadInput || !strings.Contains(stderr, c.word) {
			t.Errorf("%v: status %d, %q; want 2 and %q", c.args, status, stderr, c.word)
		}
		if _, err := os.Stat(command.RunsDir); err == nil {
			t.Errorf("%v left something behind", c.args)
		}
	}
}

// A sweep ranks its runs, resumes after a stop, and its runs can be compared.
func TestSweepAndCompare(t *testing.T) {
	t.Chdir(t.TempDir())
	grid := "base: {data_train: 300, data_test: 50, hidden: 4, agents: 4, batch: 8, iterations: 60, eval_points: " +
		"3}\ngrid: {algo: [dsgd, fspda-sa], alpha: [0.000001, 0.3]}\nmetric: train_loss_worst\n"
	if err := os.WriteFile("grid.yaml", []byte(grid), 0o644); err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	if status := Run(stopped, []string{"sweep", "-c", "grid.yaml"}, &out, &errs); status != command.ExitStopped {
		t.Errorf("a sweep that is stopped at once ends with %d\n%s", status, errs.String())
	}
	status, stdout, stderr := call(t, "sweep", "-c", "grid.yaml", "--jobs", "2")
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if best := lines[len(lines)-1]; !strings.Contains(best, "alpha=0.3") || !strings.Contains(best, "config.yaml") {
		t.Errorf("the best is %s\n%s", best, stdout)
	}
	for _, name := range []string{"ranking.md", "ranking.csv", "sweep.html", "sweep.png"} {
		if _, err := os.Stat(filepath.Join(command.RunsDir, "sweep-grid", name)); err != nil {
			t.Error(err)
		}
	}
	runs, err := filepath.Glob(filepath.Join(command.RunsDir, "sweep-grid", "0*"))
	if err != nil || len(runs) != 4 {
		t.Fatalf("%v, %v", runs, err)
	}
	status, stdout, stderr = call(t, append([]string{"compare", "--reach", "0.05"}, runs...)...)
	if status != 0 || !strings.Contains(stdout, "algo=dsgd") || !strings.Contains(stdout, "| 5 % |") {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
	for _, name := range []string{"compare.html", "compare.svg", "table.csv"} {
		if _, err := os.Stat(filepath.Join(command.RunsDir, "compare-1", name)); err != nil {
			t.Error(err)
		}
	}
}

// Seeds are folded into means with deviations by sweep, figure and compare.
func TestSeedsAreFolded(t *testing.T) {
	t.Chdir(t.TempDir())
	grid := "base: {data_train: 300, data_test: 50, hidden: 4, agents: 4, batch: 8, iterations: 30, eval_points: 3}\n" +
		"grid: {algo: [dsgd, fspda-sa]}\nmetric: bits_to(0.1)\n"
	if err := os.WriteFile("grid.yaml", []byte(grid), 0o644); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := call(t, "sweep", "-c", "grid.yaml", "--seeds", "2", "--raw")
	if status != 0 || !strings.Contains(stdout, "| rank | run | bits_to(0.1) | std | runs | resolution |") ||
		!strings.Contains(stdout, "mean of 2 seeds") {
		t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
	}
	if status, _, stderr := call(t, "sweep", "-c", "grid.yaml", "--seeds", "2"); status != 0 ||
		strings.Count(stderr, "already done") != 4 {
		t.Errorf("a sweep that is done: exit status %d\n%s", status, stderr)
	}
	runs, err := filepath.Glob(filepath.Join(command.RunsDir, "sweep-grid", "0*-seed-*"))
	if err != nil || len(runs) != 4 {
		t.Fatalf("%v, %v", runs, err)
	}
	tidy, err := os.ReadFile(filepath.Join(command.RunsDir, "sweep-grid", "evaluations.csv"))
	if lines := strings.Count(string(tidy), "\n"); err != nil || lines != 1+4*4 ||
		!strings.HasPrefix(string(tidy), "run,setting,seed,algo,") {
		t.Errorf("%d lines, %v\n%s", lines, err, tidy)
	}
	status, stdout, stderr = call(t, append([]string{"compare", "--reach", "0.05", "--out", "both"}, runs...)...)
	if status != 0 || strings.Count(stdout, "(2 seeds)") != 4 || !strings.Contains(stdout, " ± ") {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
	page, err := os.ReadFile(filepath.Join("both", "compare.html"))
	if err != nil || !bytes.Contains(page, []byte("Cost of an accuracy")) ||
		!bytes.Contains(page, []byte(`"spread":{`)) ||
		!bytes.Contains(page, []byte(`"name":"dsgd (2 seeds)","run":"001-algo=dsgd (2 seeds)"`)) ||
		!bytes.Contains(page, []byte(`<th scope="row" role="rowheader">fspda-sa (2 seeds)</th>`)) {
		t.Errorf("the page of compare has no means or no costs, or its names are not those that differ: %v", err)
	}
	status, stdout, stderr = call(t, tinyFigure("1", "fig", "--only", "sa,led", "--seeds", "3,5")...)
	if status != 0 || strings.Count(stdout, "(2 seeds)") != 4 {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join("fig", "sa-seed-5", "summary.json")); err != nil {
		t.Error(err)
	}
}

// A tuning searches with its own seeds, reports fresh ones, and keeps what is done.
func TestTune(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "base: {data_train: 300, data_test: 50, hidden: 4, agents: 4, batch: 8, iterations: 60, eval_points: 3}\n" +
		"methods:\n  - {name: SA, set: {algo: fspda-sa}, grid: {alpha: [0.000001, 0.3], gamma: [0.5]}}\n" +
		"  - {set: {algo: diloco, local_steps: 20}, grid: {alpha: [0.1, 0.3], params.outer_lr: [0.7]}}\n" +
		"seeds: [7]\nreport: [1, 2]\nmetric: train_loss_avg\nbudgets: [{seconds: 100}, {bits: 1e12}]\n" +
		"network: {gradient_ms: 5, default: {latency_ms: 20}}\n"
	if err := os.WriteFile("methods.yaml", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := call(t, "tune", "-c", "methods.yaml", "--jobs", "2")
	if status != 0 || !strings.Contains(stdout, "| SA | `{alpha: [") ||
		!strings.Contains(stdout, ", 0.3], gamma: [0.5]}` | alpha 0.3, gamma 0.5 | alpha |") ||
		!strings.Contains(stdout, "with seeds 1,2, which are reported") {
		t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
	}
	for name, want := range map[string]int{"search-*": 4, "report-*": 4, "tuning*": 5,
		"ranking.*": 2, "network.yaml": 1} {
		if files, err := filepath.Glob(filepath.Join(command.RunsDir, "tune-methods", name)); err != nil ||
			len(files) != want {
			t.Errorf("%s: %v, %v", name, files, err)
		}
	}
	var lines []struct {
		Method string
		Values []float64
	}
	status, stdout, stderr = call(t, "tune", "-c", "methods.yaml", "--json")
	if err := json.Unmarshal([]byte(stdout), &lines); status != 0 || err != nil || len(lines) != 4 ||
		len(lines[1].Values) != 2 || strings.Count(stderr, "already done") != 8 {
		t.Errorf("exit status %d, %v\n%s%s", status, err, stdout, stderr)
	}
}

// A figure of tuned methods takes another data set, keys and seeds.
func TestFigureOfTunedMethods(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"figure", "methods", "--only", "sgd", "--seeds", "4,5", "--data", "synthetic"}
	for _, set := range []string{"data_train=300", "data_test=50", "hidden=4", "iterations=10", "eval_points=2"} {
		args = append(args, "--set", set)
	}
	status, stdout, stderr := call(t, args...)
	if status != 0 || !strings.Contains(stdout, "with seeds 4,5, which are reported") ||
		strings.Count(stdout, "| sgd |") != 2 {
		t.Errorf("exit status %d\n%s%s", status, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(command.RunsDir, "figure-methods", "ranking.png")); err != nil {
		t.Error(err)
	}
}

// The list of figures and the pages of the manual are available as JSON.
func TestListsAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	var figures []struct {
		ID      string
		Runs    []string
		Seconds *float64
	}
	status, stdout, stderr := call(t, "figure", "list", "--no-time", "--json")
	if err := json.Unmarshal([]byte(stdout), &figures); status != 0 || err != nil || len(figures) < 8 ||
		figures[0].ID != "mnist-main" || len(figures[0].Runs) != 8 || figures[0].Seconds != nil {
		t.Errorf("exit status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	var pages []map[string]string
	status, stdout, _ = call(t, "docs", "--json")
	if err := json.Unmarshal([]byte(stdout), &pages); status != 0 || err != nil || pages[0]["page"] != "start" {
		t.Errorf("exit status %d, %v\n%s", status, err, stdout)
	}
	if status, _, stderr := call(t, "runs", "prune", "--json"); status != command.ExitBadInput ||
		!strings.Contains(stderr, "--yes") {
		t.Errorf("prune without --yes: exit status %d, %s", status, stderr)
	}
	if status, stdout, _ := call(t, "runs", "prune", "--json", "--yes"); status != 0 ||
		stdout != "{\n  \"deleted\": []\n}\n" {
		t.Errorf("prune: exit status %d, %s", status, stdout)
	}
}
