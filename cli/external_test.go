//go:build linux || darwin

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/internal/rng"
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

// An MLP in another program trains as the built-in one from the same weights, resumes to the same
// bits, and is evaluated and exported as any network.
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

// The Python package: training, resuming, run folders and trackers, with the standard library
// alone. FSPDA_PEERS names a python with PyTorch, which tests modules, too.
func TestPython(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		var err error
		if python, err = exec.LookPath("python3"); err != nil {
			t.Skip("there is no python3")
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "fspda")
	text := "#!/bin/sh\nexec env FSPDA_TEST_AS_PROGRAM=1 '" + self + "' \"$@\"\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "../python/tests")
	cmd.Env = append(os.Environ(), "PYTHONPATH=../python", "FSPDA_BINARY="+program, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// A run whose program and whose clients are killed at any moment ends with the bits of one that
// nobody disturbed, and leaves no process behind.
func TestExternalKills(t *testing.T) {
	kills := 3
	if os.Getenv("FSPDA_LONG") != "" {
		kills = 50
	}
	dir := t.TempDir()
	own := ownModel(t)
	pids := filepath.Join(dir, "pids")
	command := fmt.Sprintf("echo $$ >>'%s'; %s", pids, own)
	args := func(folder string) []string {
		return append(few(folder, "--model", "external", "--command", command, "--iterations", "30",
			"--checkpoint-every", "0.05"), "--clients", "2")
	}
	whole := filepath.Join(dir, "whole")
	mustCall(t, args(whole)...)
	r := rng.New(uint64(kills), "test")
	done := 0
	for run := 0; done < kills; run++ {
		folder := filepath.Join(dir, fmt.Sprint("run", run))
		for ended := false; !ended; {
			a := args(folder)
			if _, err := os.Stat(filepath.Join(folder, "config.yaml")); err == nil {
				a = append([]string{"train", "--quiet", "--resume", "--out"}, folder)
			}
			cmd := exec.Command(os.Args[0], a...)
			cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := os.WriteFile(pids, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			over := make(chan error)
			go func() { over <- cmd.Wait() }()
			kill, killed := done%2, false
			for !ended && !killed {
				select {
				case err := <-over:
					if err != nil {
						t.Fatalf("%v: %v\n%s", a, err, said.Bytes())
					}
					ended = true
				case <-time.After(time.Duration(r.Float64() * float64(1500*time.Millisecond))):
					if done == kills {
						continue
					}
					done++
					if kill == 0 {
						_ = cmd.Process.Kill()
						<-over
						killed = true
						continue
					}
					if all := clients(t, pids); len(all) > 0 {
						_ = syscall.Kill(all[r.IntN(len(all))], syscall.SIGKILL) // it may have ended
					}
					kill = r.IntN(2)
				}
			}
			checkGone(t, clients(t, pids))
		}
		for i, x := range models(t, folder) {
			if !slices.Equal(x, models(t, whole)[i]) {
				t.Fatalf("run %d after %d kills: another model of agent %d", run, done, i)
			}
		}
	}
}

// clients lists the processes that a file names.
func clients(t *testing.T, file string) (all []int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}

// checkGone fails unless processes end within seconds.
func checkGone(t *testing.T, pids []int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		alive := slices.ContainsFunc(pids, func(pid int) bool {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return err == nil && !strings.Contains(string(text), ") Z ")
		})
		if !alive {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("processes %v are left behind", pids)
		}
	}
}

// Agents in processes of their own, each with a client of its own, compute as in one process.
func TestExternalModelOverProcesses(t *testing.T) {
	dir, own := t.TempDir(), ownModel(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	more := []string{"--model", "external", "--command", own, "--iterations", "10"}
	mustCall(t, few(path("one"), more...)...)
	many := few(path("many"), more...)
	cmd, said, err := startUp(io.Discard, many[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(said)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if a, b := vectors(t, path("one")), vectors(t, path("many")); a != b {
		t.Errorf("vectors %s, in one process %s", b, a)
	}
}

// A wheel installs in a fresh environment, and its command and its package train.
func TestWheel(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" && os.Getenv("FSPDA_PEERS") == "" {
		t.Skip("builds the program: set FSPDA_LONG=1")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PYTHONPATH=") })
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	script, err := filepath.Abs("../deploy/wheel.py")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Abs("../python/tests")
	if err != nil {
		t.Fatal(err)
	}
	run(python, script, filepath.Join(dir, "wheels"), runtime.GOOS+"/"+runtime.GOARCH)
	wheels, err := filepath.Glob(filepath.Join(dir, "wheels", "*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("wheels %v, %v", wheels, err)
	}
	run(python, "-m", "venv", "venv")
	bin := filepath.Join(dir, "venv", "bin")
	run(filepath.Join(bin, "pip"), "install", "--no-deps", "--no-index", wheels[0])
	if out := run(filepath.Join(bin, "fspda"), "version"); !strings.Contains(out, "fspda") {
		t.Errorf("version: %s", out)
	}
	run(filepath.Join(bin, "python"), "-m", "unittest", "discover", "-s", tests)
}

// An external model appears in a figure and in a sweep beside a built-in network.
func TestExternalInExperiments(t *testing.T) {
	dir := t.TempDir()
	base := "base: {agents: 3, batch: 4, data_train: 200, data_test: 40, metrics: test, eval_points: 2, " +
		"iterations: 6}\n"
	theirs := fmt.Sprintf("{model: external, command: %q}", ownModel(t))
	for kind, text := range map[string]string{
		"figure": base + "runs:\n  - {name: built-in, set: {hidden: 6}}\n  - {name: mine, set: " + theirs + "}\n",
		"sweep": base + "runs:\n  - {set: " + theirs + ", grid: {alpha: [0.01, 0.1]}}\n" +
			"search: {seeds: [1], metric: test_acc_avg}\n",
	} {
		file, out := filepath.Join(dir, kind+".yaml"), filepath.Join(dir, kind)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		mustCall(t, kind, "-c", file, "--out", out, "--quiet")
		configs, err := filepath.Glob(filepath.Join(out, "*", "config.yaml"))
		if err != nil || len(configs) != 2 {
			t.Errorf("%s: runs %v, %v", kind, configs, err)
		}
	}
}

// A program that always fails ends the run. The error has the program's last words and advice. With
// a program that works the run continues, and ends with the bits of an undisturbed run.
func TestExternalProgramFails(t *testing.T) {
	dir, own := t.TempDir(), ownModel(t)
	broken, folder, whole := filepath.Join(dir, "broken"), filepath.Join(dir, "run"), filepath.Join(dir, "whole")
	failing := fmt.Sprintf("[ -e '%s' ] && { echo 'the disk is gone'; exit 1; }; FAULT='exit@50@%[1]s' %s", broken, own)
	more := []string{"--model", "external", "--iterations", "30", "--checkpoint-every", "0.001", "--command"}
	mustCall(t, few(whole, append(more, own)...)...)
	status, _, stderr := call(t, few(folder, append(more, failing)...)...)
	if status != 1 || !strings.Contains(stderr, "it ended without an answer") ||
		!strings.Contains(stderr, "the disk is gone") || !strings.Contains(stderr, "--resume goes on") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	mustCall(t, "train", "--quiet", "--out", folder, "--resume", "--command", own)
	if a, b := vectors(t, whole), vectors(t, folder); a != b {
		t.Errorf("vectors %s, undisturbed %s", b, a)
	}
}
