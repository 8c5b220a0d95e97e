//go:build !windows

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/web"
)

// Runs are listed, selected by words and status, drawn, and deleted; without confirmation none is
// deleted.
func TestRunsListPlotPrune(t *testing.T) {
	t.Chdir(t.TempDir())
	if status, stdout, _ := call(t, "runs"); status != 0 || !strings.Contains(stdout, "no such runs") {
		t.Errorf("before the first run: exit status %d, %s", status, stdout)
	}
	for _, algo := range []string{"fspda-sa", "dsgd"} {
		if status, _, stderr := call(t, quick("--quiet", "--algo", algo)...); status != 0 {
			t.Fatal(stderr)
		}
	}
	_, stdout, _ := call(t, "runs", "DSGD", "complete", "--status", "finished", "--json")
	var found []web.RunInfo
	if err := json.Unmarshal([]byte(stdout), &found); err != nil || len(found) != 1 || found[0].Algo != "dsgd" ||
		found[0].Accuracy == nil {
		t.Fatalf("%v: %s", err, stdout)
	}
	if _, stdout, _ := call(t, "runs"); strings.Count(stdout, "finished") != 2 ||
		!strings.Contains(stdout, "runs/dsgd-synthetic-1") {
		t.Errorf("%s", stdout)
	}
	if _, stdout, _ := call(t, "runs", "list", "dsgd"); strings.Count(stdout, "finished") != 1 {
		t.Errorf("runs list dsgd: %s", stdout)
	}
	if _, stdout, _ := call(t, "runs", "dsgd", "lst"); stdout !=
		"no run in runs has lst in its name, algorithm, data, graph or status\n" {
		t.Errorf("runs lst: %s", stdout)
	}
	if status, stdout, stderr := call(t, "plot", "runs/dsgd-synthetic-1", "runs/fspda-sa-synthetic-1", "--format",
		"pdf", "--json"); status != 0 || !strings.Contains(stdout, "runs/plots-1/bits.pdf") {
		t.Errorf("exit status %d, %s%s", status, stdout, stderr)
	}
	if status, stdout, stderr := call(t, "plot", "runs/dsgd-synthetic-1", "--format", "pdf"); status != 0 ||
		strings.Count(stdout, "runs/dsgd-synthetic-1/plots/") != 8 {
		t.Errorf("exit status %d, %s%s", status, stdout, stderr)
	}
	var table []map[string]any
	_, stdout, _ = call(t, "compare", "runs/dsgd-synthetic-1", "runs/fspda-sa-synthetic-1", "--json")
	if err := json.Unmarshal([]byte(stdout), &table); err != nil || len(table) != 2 ||
		table[0]["algorithm"] != "dsgd" || table[1]["iterations"] != 40.0 || table[0]["bits_to_95%_mean_model"] != nil {
		t.Errorf("%v: %s", err, stdout)
	}
	// what the shell makes of runs/*, after the two commands before have written there
	for _, name := range []string{"plot", "compare"} {
		status, _, stderr := call(t, name, "runs/compare-1", "runs/dsgd-synthetic-1", "runs/fspda-sa-synthetic-1",
			"runs/plots-1")
		if status != 0 || !strings.Contains(stderr, "hold no run (no config.yaml): runs/compare-1, runs/plots-1") {
			t.Errorf("%s runs/*: exit status %d, %s", name, status, stderr)
		}
		if status, _, stderr := call(t, name, "runs/plots-1"); status != command.ExitBadInput {
			t.Errorf("%s of no run: exit status %d, %s", name, status, stderr)
		}
		damaged := filepath.Join("runs", "damaged")
		if err := errors.Join(os.MkdirAll(damaged, 0o755), os.WriteFile(filepath.Join(damaged, "config.yaml"),
			[]byte("alpha: [\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		status, _, stderr = call(t, name, "runs/dsgd-synthetic-1", damaged)
		if status != 0 || !strings.Contains(stderr, "left out: run folder "+damaged+": cannot be read") {
			t.Errorf("%s with a damaged run: exit status %d, %s", name, status, stderr)
		}
		status, _, stderr = call(t, name, "runs/dsgd-synthetic-1", "runs/mistyped")
		if status != command.ExitBadInput || !strings.Contains(stderr, "runs/mistyped") {
			t.Errorf("%s with no such run: exit status %d, %s", name, status, stderr)
		}
		if err := os.RemoveAll(damaged); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("file", nil, 0o644); err != nil {
			t.Fatal(err)
		}
		status, _, stderr = call(t, name, "runs/dsgd-synthetic-1", "--out", "file")
		if status != command.ExitBadInput || !strings.Contains(stderr, "name a folder that can be made") {
			t.Errorf("%s --out file: exit status %d, %s", name, status, stderr)
		}
	}
	prune := func(answer string, args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		root := newRoot(&out, &errs)
		root.SetArgs(append([]string{"runs", "prune"}, args...))
		root.SetIn(strings.NewReader(answer))
		return command.ExitStatus(root.Execute()), out.String(), errs.String()
	}
	if _, out, _ := prune("n\n", "dsgd"); !strings.Contains(out, "Delete these 1 runs?") ||
		!strings.Contains(out, "nothing was deleted") {
		t.Errorf("%s", out)
	}
	if _, out, _ := prune("", "--keep", "2", "--yes"); !strings.Contains(out, "nothing to delete") {
		t.Errorf("%s", out)
	}
	if _, out, _ := prune("yes\n", "dsgd"); !strings.Contains(out, "deleted runs/dsgd-synthetic-1") {
		t.Errorf("%s", out)
	}
	notes := filepath.Join("runs", "fspda-sa-synthetic-1", "notes.txt")
	if err := os.WriteFile(notes, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := prune("", "--yes"); status != command.ExitBadInput {
		t.Errorf("a folder with notes was deleted: exit status %d", status)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Error(err)
	}
}

// A run that failed to converge is said to by runs, compare and its report; a healthy run, and a
// short one, is not.
func TestFailedToConvergeIsShown(t *testing.T) {
	t.Chdir(t.TempDir())
	folders := []string{filepath.Join("runs", "failed"), filepath.Join("runs", "healthy"), filepath.Join("runs",
		"short")}
	for i, args := range [][]string{{"--iterations", "250", "--algo", "gt-adam", "--alpha", "0.3"},
		{"--iterations", "250"}, {"--iterations", "10", "--partition", "sorted"}} {
		if status, _, stderr := call(t, quick(append(args, "--quiet", "--out", folders[i])...)...); status != 0 {
			t.Fatal(stderr)
		}
	}
	const words = "failed to converge"
	if _, stdout, _ := call(t, "runs", words); strings.Count(stdout, "finished, "+words) != 1 ||
		!strings.Contains(stdout, "failed ") || strings.Contains(stdout, "healthy") {
		t.Errorf("runs: %s", stdout)
	}
	if _, stdout, _ := call(t, append([]string{"compare"}, folders...)...); strings.Count(stdout,
		"(finished, "+words+")") != 1 {
		t.Errorf("compare: %s", stdout)
	}
	for i, folder := range folders {
		report, err := os.ReadFile(filepath.Join(folder, "report.html"))
		if err != nil || bytes.Contains(report, []byte("has "+words+": the training loss ends at")) != (i == 0) {
			t.Errorf("%s: report.html: %v", folder, err)
		}
	}
}

// textNumbers lists the places of a JSON value where a text is a number.
func textNumbers(v any, at string) (found []string) {
	switch v := v.(type) {
	case map[string]any:
		for k, part := range v {
			if k != "driver" && k != "version" { // versions may look like numbers: 13.0
				found = append(found, textNumbers(part, at+"."+k)...)
			}
		}
	case []any:
		for _, part := range v {
			found = append(found, textNumbers(part, at+"[]")...)
		}
	case string:
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			found = append(found, at+" = "+v)
		}
	}
	return found
}

// Every command that prints JSON writes numbers as numbers.
func TestJSONNumbersAreNumbers(t *testing.T) {
	t.Chdir(t.TempDir())
	small := "{data_train: 300, data_test: 50, hidden: 4, batch: 8, iterations: 10, eval_points: 1}"
	for name, text := range map[string]string{
		"sweep.yaml": "base: " + small + "\ngrid: {agents: [3, 4]}\n",
		"tune.yaml": "base: " + small + "\nmethods: [{set: {algo: dsgd}, grid: {alpha: [0.1]}}, {set: {algo: " +
			"fspda-sa}, grid: {alpha: [0.1]}}]\nseeds: [7]\nreport: [1]\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join("runs", "one")
	for _, args := range [][]string{quick("--json", "--out", run), {"sweep", "-c", "sweep.yaml", "--json", "--quiet"},
		{"tune", "-c", "tune.yaml", "--json", "--quiet"}, {"runs", "--json"}, {"runs", "--dir",
			filepath.Join("runs", "sweep-sweep"), "--json"}, {"compare", run, "--json"}, {"plot", run, "--json"},
		quick("--dry-run", "--json"), {"figure", "list", "--no-time", "--json"}, {"docs", "--json"},
		{"eval", run, "--json"}, {"predict", run, "--json"}, {"version", "--json"}, {"devices", "--json"}} {
		status, stdout, stderr := call(t, args...)
		if status != 0 {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
			continue
		}
		values := json.NewDecoder(strings.NewReader(stdout))
		for {
			var v any
			if err := values.Decode(&v); err != nil {
				if err != io.EOF {
					t.Errorf("%v: %v in %.300s", args, err, stdout)
				}
				break
			}
			if found := textNumbers(v, ""); len(found) > 0 {
				t.Errorf("%v: texts that are numbers: %v", args, found)
			}
		}
	}
}

func TestRunsRefuse(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"runs", "--status", "finishd"}, "did you mean finished?"},
		{[]string{"runs", "--dir", "nowhere"}, "name the folder"},
		{[]string{"runs", "--statsu", "x"}, "did you mean --status?"},
		{[]string{"runs", "prune", "--keep", "-1"}, "must not be negative"},
		{[]string{"plot"}, "expected the folders of runs to draw"},
		{[]string{"plot", "nowhere"}, "holds no run"},
		{[]string{"plot", "nowhere", "--format", ""}, "--format is empty"},
		{[]string{"plot", "nowhere", "--accounting", "packed"}, "no effect on one run"},
		{[]string{"plot", "nowhere", "--format", "pd"}, "did you mean pdf?"},
		{[]string{"plot", "nowhere", "--accounting", "packt"}, "did you mean packed"},
	} {
		if status, _, stderr := call(t, c.args...); status != command.ExitBadInput || !strings.Contains(stderr,
			c.want) {
			t.Errorf("%v: exit status %d, %s", c.args, status, stderr)
		}
	}
}
