//go:build linux || darwin

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/train"
)

// ownModel returns the command of the MLP that the tests of package external have in Python.
func ownModel(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(setup.CloseClients)
	return fmt.Sprintf("PYTHONPATH='%s/python' exec python3 '%[1]s/model/external/testdata/mlp.py' 6", root)
}

// few returns the arguments of a run of some gradients.
func few(folder string, more ...string) []string {
	return append([]string{"train", "--quiet", "--data-train", "200", "--data-test", "40", "--agents", "3",
		"--batch", "4", "--metrics", "test", "--eval-points", "2", "--density", "0.5", "--alpha", "0.05",
		"--out", folder}, more...)
}

// models returns the models of all agents in a run folder.
func models(t *testing.T, folder string) (all [][]float32) {
	t.Helper()
	saved, err := train.OpenSaved(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	for i := range saved.Agents {
		x, _, err := saved.Agent(i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// mustCall runs the program, which must succeed.
func mustCall(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	status, stdout, stderr := call(t, args...)
	if status != 0 {
		t.Fatalf("%v: exit status %d\n%s", args, status, stderr)
	}
	return stdout, stderr
}

// An MLP in another program trains as the built-in one from the same weights, resumes to the same bits,
// and is evaluated and exported as any network.
func TestExternalModel(t *testing.T) {
	dir, own := t.TempDir(), ownModel(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	start := path("start.safetensors")
	mustCall(t, few(path("start"), "--hidden", "6", "--iterations", "1")...)
	mustCall(t, "export", path("start"), "--out", start)
	theirs := []string{"--model", "external", "--command", own, "--init", start}
	for _, algo := range []string{"fspda-sa", "fspda-storm"} {
		ours, other := path("ours-"+algo), path("theirs-"+algo)
		mustCall(t, few(ours, "--hidden", "6", "--init", start, "--iterations", "12", "--algo", algo)...)
		mustCall(t, few(other, append(theirs, "--iterations", "12", "--algo", algo)...)...)
		a, b := models(t, ours), models(t, other)
		for i := range a {
			for k := range a[i] {
				if d := math.Abs(float64(a[i][k] - b[i][k])); !(d < 1e-5) {
					t.Fatalf("%s: number %d of agent %d is %g, of the built-in network %g", algo, k, i, b[i][k],
						a[i][k])
				}
			}
		}
		part := path("part-" + algo)
		mustCall(t, few(part, append(theirs, "--iterations", "6", "--algo", algo)...)...)
		mustCall(t, "train", "--quiet", "--out", part, "--resume", "--iterations", "12", "--clients", "2")
		for i, x := range models(t, part) {
			if !slices.Equal(x, b[i]) {
				t.Errorf("%s: a run that was resumed has another model of agent %d", algo, i)
			}
		}
	}
	checkTrained(t, path("theirs-fspda-sa"))
	if status, _, stderr := call(t, "train", "--model", "external"); status != command.ExitBadInput ||
		!strings.Contains(stderr, "--command") {
		t.Errorf("without a command: exit status %d, %s", status, stderr)
	}
	if status, _, stderr := call(t, few(path("cuda"), append(theirs, "--device", "cuda")...)...); status == 0 {
		t.Errorf("on a GPU: exit status %d, %s", status, stderr)
	}
}

// checkTrained evaluates and exports a run of an external model.
func checkTrained(t *testing.T, run string) {
	t.Helper()
	var report struct {
		Network  string
		Examples int
		Models   []struct{ Accuracy, Loss float64 }
	}
	stdout, _ := mustCall(t, "eval", run, "--json")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	if report.Network != "mlp 784-6-10 sigmoid" || report.Examples != 40 || !(report.Models[0].Loss > 0.5) {
		t.Errorf("report %+v", report)
	}
	file := filepath.Join(t.TempDir(), "mean.safetensors")
	mustCall(t, "export", run, "--out", file)
	if stdout, _ := mustCall(t, "eval", file, "--hidden", "6", "--model", "mlp", "--data-test", "40",
		"--data-train", "200", "--json"); !strings.Contains(stdout, `"examples": 40`) {
		t.Errorf("the built-in network with the exported weights: %s", stdout)
	}
	if status, _, stderr := call(t, "export", run, "--format", "onnx", "--out", file+".onnx"); status == 0 ||
		!strings.Contains(stderr, "no graph") {
		t.Errorf("to ONNX: exit status %d, %s", status, stderr)
	}
}
