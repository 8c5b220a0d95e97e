//go:build !windows

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/cli/weights"
	"fspda/model"
	"fspda/model/onnx"
	"fspda/train"
	"fspda/train/safetensors"
)

// A run that starts from the exported mean, agent or best model has its accuracy at iteration 0.
func TestExportAndInit(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first")
	if status, _, stderr := call(t, quick("--out", first, "--quiet", "--iterations", "200")...); status != 0 {
		t.Fatal(stderr)
	}
	last := lastRow(t, first)
	best, err := train.ReadBest(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		more []string
		file string
		want float64
	}{
		{nil, "mean.safetensors", last["test_acc_avg"]},
		{[]string{"--best"}, "best.safetensors", float64(best.Row.TestAccAvg)},
		{[]string{"--agent", "2"}, "agent2.safetensors", math.NaN()},
	} {
		status, stdout, stderr := call(t, append([]string{"export", first}, c.more...)...)
		if status != 0 || !strings.Contains(stdout, "4 tensors, 4,780 parameters") {
			t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
		}
		second := filepath.Join(dir, c.file)
		if status, _, stderr := call(t, quick("--out", second, "--quiet", "--iterations", "1", "--eval-points", "1",
			"--init", filepath.Join(first, c.file))...); status != 0 {
			t.Fatal(stderr)
		}
		rows, err := train.ReadMetrics(filepath.Join(second, "metrics.jsonl"), 1)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		got := float64(rows[0].TestAccAvg)
		if c.want == c.want && got != c.want || got < last["test_acc_min"] {
			t.Errorf("%s: accuracy %v at the start, want %v", c.file, got, c.want)
		}
	}
}

// The ONNX file of a run holds the same model as its weight file.
func TestExportONNX(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, quick("--out", dir, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	one := []string{"export", dir, "--agent", "1"}
	for _, args := range [][]string{one, append(one, "--format", "onnx"), one, append(one, "--format", "onnx")} {
		if status, stdout, stderr := call(t, args...); status != 0 ||
			!strings.Contains(stdout, "4 tensors, 4,780 parameters") {
			t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
		}
	}
	net, err := model.Open("mlp", model.Options{Shape: []int{28, 28}, Classes: 10, Hidden: []int{6}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := weights.Read(filepath.Join(dir, "agent1.safetensors"), net, weights.Options{})
	if err != nil {
		t.Fatal(err)
	}
	saved, err := train.OpenSaved(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	var want bytes.Buffer
	if err := onnx.Write(&want, net, w.X, nil, weights.Metadata(dir, "agent1", 40, net, saved.Config)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "agent1.onnx"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes, want %d with the same model, %v", len(got), want.Len(), err)
	}
}

// lastRow returns the last line of metrics.jsonl.
func lastRow(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	values := map[string]any{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &values); err != nil {
		t.Fatal(err)
	}
	row := map[string]float64{}
	for name, v := range values {
		if number, ok := v.(float64); ok { // the checksum is a string
			row[name] = number
		}
	}
	return row
}

func TestExportRefuses(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if status, _, stderr := call(t, quick("--out", run, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	precious := filepath.Join(dir, "d", "precious")
	if err := errors.Join(os.Mkdir(filepath.Dir(precious), 0o755), os.WriteFile(precious, []byte("text"), 0o600),
		os.WriteFile(filepath.Join(dir, "d", "config.json"), []byte("{}"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"holds no run":       {dir},
		"agents 0 to 4":      {run, "--agent", "5"},
		"--agent -2: expect": {run, "--agent", "-2"},
		"leave --agent out":  {run, "--agent", "1", "--best"},
		"one run folder":     {},
		"format \"pickle\"":  {run, "--format", "pickle"},
		"only of [resnet18":  {run, "--format", "hf"},
		"cannot be written":  {run, "--out", filepath.Join(dir, "none", "w")},
		"choose another":     {run, "--format", "onnx", "--out", filepath.Join(dir, "none", "w")},
		"unknown flag: --ag": {run, "--ag", "1"},
		"config.yaml exists": {run, "--out", filepath.Join(run, "config.yaml")},
		"jsonl exists":       {run, "--format", "onnx", "--out", filepath.Join(run, "metrics.jsonl")},
		"precious exists":    {run, "--out", precious},
		"config.json exists": {run, "--format", "hf", "--out", filepath.Dir(precious)},
		".pth does not say":  {run, "--out", filepath.Join(dir, "x.pth")},
		".safetensors does":  {run, "--format", "onnx", "--out", filepath.Join(dir, "x.safetensors")},
		"is a file":          {precious},
	} {
		if status, _, stderr := call(t, append([]string{"export"}, args...)...); status != command.ExitBadInput ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
		}
	}
}

// --init refuses a file of another format.
func TestInitRefusesText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "text")
	if err := os.WriteFile(path, []byte("hello, this is no tensor"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, quick("--out", filepath.Join(dir, "run"), "--init",
		path)...); status != command.ExitBadInput || !strings.Contains(stderr, "init") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}

// Fine-tuning takes all but the last layer from a file, trains what is not frozen, and goes on
// counting batches.
func TestFineTune(t *testing.T) {
	dir := t.TempDir()
	finetune := func(run string, more ...string) *safetensors.File {
		run = filepath.Join(dir, run)
		args := append([]string{"train", "--data", "synthetic-images", "--crop", "8", "--data-train", "40",
			"--data-test", "10", "--model", "resnet20", "--agents", "2", "--batch", "4", "--iterations", "2",
			"--eval-points", "1", "--bn-batches", "2", "--device", "cpu", "--quiet", "--out", run}, more...)
		for _, args := range [][]string{args, {"export", run}} {
			if status, _, stderr := call(t, args...); status != 0 {
				t.Fatal(stderr)
			}
		}
		f, err := safetensors.Open(filepath.Join(run, "mean.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first := finetune("first")
	second := finetune("second", "--seed", "2", "--init", filepath.Join(dir, "first", "mean.safetensors"),
		"--init-head", "new", "--freeze", "*,!fc", "--layer-lr", "fc=2")
	for _, info := range second.Tensors() {
		a, err := io.ReadAll(section(t, first, info.Name))
		b, err2 := io.ReadAll(section(t, second, info.Name))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		moves := strings.HasPrefix(info.Name, "fc.") || strings.Contains(info.Name, "running_") ||
			strings.HasSuffix(info.Name, "num_batches_tracked")
		if bytes.Equal(a, b) == moves {
			t.Errorf("%s: equal %v, want %v", info.Name, !moves, moves)
		}
	}
	if n, err := safetensors.Load[int64](second, "bn1.num_batches_tracked"); err != nil || n[0] != 4 {
		t.Errorf("%v batches, want those of both runs, 4; %v", n, err)
	}
}

func section(t *testing.T, f *safetensors.File, name string) io.Reader {
	t.Helper()
	s, err := f.Section(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
