//go:build !windows

package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cli/command"
	"fspda/train"
)

// evalReport is what the tests read of fspda eval --json.
type evalReport struct {
	Examples int
	Names    []string `json:"class_names"`
	Models   []struct {
		Model                     string
		Accuracy, Top5, Loss, ECE float64
		Confusion                 [][]int
	}
}

func evaluated(t *testing.T, args ...string) (r evalReport) {
	t.Helper()
	status, stdout, stderr := call(t, append([]string{"eval", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil {
		t.Fatalf("exit status %d, %v\n%s", status, err, stderr)
	}
	return r
}

// An evaluation of a run is that of its last row, of the mean model and of every agent, with batch
// norm too. The predictions of the examples are those in the confusion table.
func TestEval(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, "train", "--data", "synthetic-images", "--crop", "8", "--data-train",
		"60", "--data-test", "50", "--model", "resnet20", "--agents", "2", "--batch", "6", "--iterations", "8",
		"--eval-points", "1", "--bn-batches", "4", "--device", "cpu", "--quiet", "--out", dir); status != 0 {
		t.Fatal(stderr)
	}
	row := lastRow(t, dir)
	r := evaluated(t, dir, "--every-agent")
	if len(r.Models) != 3 || r.Models[2].Model != "agent1" || r.Examples != 50 {
		t.Fatalf("%+v", r)
	}
	mean, a, b := r.Models[0], r.Models[1].Accuracy, r.Models[2].Accuracy
	for name, pair := range map[string][2]float64{"test_acc_avg": {mean.Accuracy, 0}, "test_top5_avg": {mean.Top5, 0},
		"test_loss_avg": {mean.Loss, 1e-5}, "test_acc_min": {min(a, b), 0}, "test_acc_max": {max(a, b), 0},
		"test_loss_mean": {(r.Models[1].Loss + r.Models[2].Loss) / 2, 1e-5}} {
		if math.Abs(row[name]-pair[0]) > pair[1]+1e-9 {
			t.Errorf("%s: %v, the row has %v", name, pair[0], row[name])
		}
	}
	status, stdout, stderr := call(t, "predict", dir, "--json", "--top", "1")
	if status != 0 {
		t.Fatal(stderr)
	}
	for line := range strings.Lines(stdout) {
		var p struct {
			Label int
			Top   []struct{ Class int }
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		mean.Confusion[p.Label][p.Top[0].Class]--
	}
	if got := fmt.Sprint(mean.Confusion); strings.ContainsAny(got, "123456789") {
		t.Errorf("predictions differ from the confusion table by %s", got)
	}
	for _, args := range [][]string{{"export", dir}, {"export", dir, "--agent", "1"}} {
		if status, _, stderr := call(t, args...); status != 0 {
			t.Fatal(stderr)
		}
	}
	file := evaluated(t, filepath.Join(dir, "agent1.safetensors"), "--data", "synthetic-images", "--crop", "8",
		"--data-train", "60", "--data-test", "50", "--device", "cpu")
	if got := file.Models[0]; got.Accuracy != b || got.Loss != r.Models[2].Loss || got.ECE != r.Models[2].ECE {
		t.Errorf("the file has %+v, the run %+v", got, r.Models[2])
	}
	folder := t.TempDir() // as --format hf writes
	if err := os.Rename(filepath.Join(dir, "agent1.safetensors"), filepath.Join(folder,
		"model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if got := evaluated(t, folder, "--data", "synthetic-images", "--crop", "8", "--data-train", "60", "--data-test",
		"50", "--device", "cpu"); got.Models[0].Loss != r.Models[2].Loss {
		t.Errorf("a folder of weights has %+v, the run %+v", got.Models[0], r.Models[2])
	}
	_, stdout, _ = call(t, "eval", dir)
	if !strings.Contains(stdout, "classes of mean") {
		t.Errorf("the text is %q", stdout)
	}
}

// Flags without effect on the run's data, network or device are refused, as in training.
func TestEvalRefusesUnused(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, quick("--out", run, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	for flag, needs := range map[string]string{"--crop=32": "data imagenet", "--block=3": "model gpt-nano",
		"--tokenizer=gpt2": "data text", "--precision=fp16": "a GPU"} {
		status, _, stderr := call(t, "eval", run, "--device", "cpu", flag)
		if status != command.ExitBadInput || !strings.Contains(stderr, "no effect on this command: it needs "+needs) {
			t.Errorf("%s: exit status %d, %s", flag, status, stderr)
		}
	}
	if status, _, stderr := call(t, "eval", run, "--device", "cpu", "--data-test", "50", "--hidden", "6"); status != 0 {
		t.Error(stderr)
	}
}

// A text with other characters, or with as many others, is refused: its tokens would mean something
// else to the model.
func TestEvalRefusesOtherCharacters(t *testing.T) {
	dir := t.TempDir()
	path, run := filepath.Join(dir, "text.txt"), filepath.Join(dir, "run")
	text := strings.Repeat("abcde edcba\n", 40)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text)
	if status, _, stderr := call(t, "train", "--data", "text", "--data-dir", path, "--model", "gpt-nano", "--layers",
		"1", "--width", "4", "--heads", "1", "--block", "4", "--algo", "sgd", "--agents", "1", "--batch", "2",
		"--iterations", "2", "--warmup-iterations", "1", "--eval-points", "1", "--metrics", "test", "--sample-tokens",
		"0", "--device", "cpu", "--quiet", "--out", run); status != 0 {
		t.Fatal(stderr)
	}
	for _, c := range []struct{ text, want string }{
		{text + "edcba", ""},
		{strings.ReplaceAll(text, "a", "x"), "stand for other characters than those of"},
		{text + "x", "it has 8 tokens, the model 7"},
	} {
		write(c.text)
		status, _, stderr := call(t, "eval", run)
		if (status == 0) != (c.want == "") || !strings.Contains(stderr, c.want) {
			t.Errorf("exit status %d, want the error %q: %s", status, c.want, stderr)
		}
	}
}

// Image files are predicted by the network of a run on images; classes have their folders' names.
func TestPredictFiles(t *testing.T) {
	image := golden(t)
	dir := imageTree(t, map[string][]byte{"train/cat/1.png": image, "train/dog/2.png": image, "val/cat/3.png": image,
		"val/dog/4.png": image})
	run := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, "train", "--data", "folder", "--data-dir", dir, "--crop", "8", "--hidden", "4",
		"--agents", "1", "--partition", "shuffled", "--batch", "2", "--iterations", "2", "--eval-points", "1",
		"--device", "cpu", "--quiet", "--out", run); status != 0 {
		t.Fatal(stderr)
	}
	if r := evaluated(t, run); strings.Join(r.Names, " ") != "cat dog" {
		t.Errorf("the classes are called %v", r.Names)
	}
	_, set, _ := call(t, "predict", run)
	file := filepath.Join(dir, "val", "cat", "3.png")
	status, stdout, stderr := call(t, "predict", run, file)
	_, first, _ := strings.Cut(set, "label cat")
	first, _, _ = strings.Cut(first, "\n")
	if want := file + first + "\n"; status != 0 || stdout != want {
		t.Errorf("exit status %d: %q, want %q\n%s", status, stdout, want, stderr)
	}
	if err := os.WriteFile(file, []byte("no image"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"3.png":              {"predict", run, file},
		"has 10 classes":     {"eval", run, "--data", "synthetic-images"},
		"name the folder":    {"eval", file, "--best"},
		"expected test or":   {"eval", run, "--split", "dev"},
		"safetensors file":   {"eval", file},
		"expected a run fol": {"predict"},
		"name files of ima":  {"predict", run, run},
	} {
		if status, _, stderr := call(t, args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s, want %q", args, status, stderr, want)
		}
	}
}

// A language model is measured on the windows of its text, samples text by a seed, and predicts no
// classes.
func TestEvalText(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, "train", "--data", "synthetic-text", "--data-train", "600", "--data-test", "100",
		"--agents", "2", "--layers", "1", "--heads", "2", "--width", "8", "--block", "8", "--gelu", "erf", "--batch",
		"2", "--iterations", "4", "--warmup-iterations", "1", "--eval-points", "1", "--sample-tokens", "5", "--device",
		"cpu", "--out", run, "--quiet"); status != 0 {
		t.Fatal(stderr)
	}
	status, stdout, stderr := call(t, "eval", run, "--every-agent", "--json", "--device", "cpu")
	var r struct {
		Windows, Tokens int
		Models          []struct {
			Loss, Perplexity float64
			BitsPerByte      float64 `json:"bits_per_byte"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil {
		t.Fatalf("exit status %d, %v\n%s", status, err, stderr)
	}
	rows, err := train.ReadMetrics(filepath.Join(run, "metrics.jsonl"), 100)
	if err != nil {
		t.Fatal(err)
	}
	last := rows[len(rows)-1]
	if m := r.Models[0]; len(r.Models) != 3 || r.Windows != 12 || r.Tokens != 96 ||
		math.Abs(m.Loss-float64(last.TestLossAvg)) > 1e-6 || math.Abs(m.Perplexity-float64(last.Perplexity)) > 1e-4 ||
		math.Abs(m.BitsPerByte-float64(last.BitsPerByte)) > 1e-6 {
		t.Errorf("%+v, want the last row: %+v", r, last)
	}
	status, stdout, stderr = call(t, "eval", run, "--split", "train", "--json", "--device", "cpu")
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil {
		t.Fatalf("exit status %d, %v\n%s", status, err, stderr)
	}
	if m := r.Models[0]; math.Abs(m.BitsPerByte*math.Ln2-m.Loss) > 1e-9 { // a byte a token, unlike val.txt
		t.Errorf("%g bits per byte and a loss of %g of the training text", m.BitsPerByte, m.Loss)
	}
	mean := r.Models[0].Loss
	if status, _, stderr := call(t, "export", run); status != 0 {
		t.Fatal(stderr)
	}
	status, stdout, stderr = call(t, "eval", filepath.Join(run, "mean.safetensors"), "--data", "synthetic-text",
		"--data-train", "600", "--data-test", "100", "--split", "train", "--json", "--device", "cpu")
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil || r.Models[0].Loss != mean {
		t.Errorf("the file of weights has a loss of %v, its run of %v: exit status %d, %v\n%s", r.Models, mean, status,
			err, stderr)
	}
	_, one, _ := call(t, "sample", run, "--tokens", "20", "--device", "cpu")
	_, two, _ := call(t, "sample", run, "--tokens", "20", "--device", "cpu")
	_, other, _ := call(t, "sample", run, "--tokens", "20", "--seed", "2", "--device", "cpu")
	if one != two || one == other || len(one) != 22 {
		t.Errorf("samples %q, %q and %q", one, two, other)
	}
	if status, _, stderr := call(t, "export", run, "--format", "onnx"); status != 0 {
		t.Errorf("export to ONNX: exit status %d, %s", status, stderr)
	}
	for want, args := range map[string][]string{
		`--prompt "A": character 0 is 'A', which is not among`: {"sample", run, "--prompt", "A"},
		"--prompt is empty":    {"sample", run, "--prompt", ""},
		"temperature -1":       {"sample", run, "--temperature", "-1"},
		"--seed has no effect": {"sample", run, "--temperature", "0", "--seed", "3"},
		"predicts no classes":  {"predict", run},
		"did you mean fp32?":   {"sample", run, "--precision", "fp33"},
		"threads -1":           {"eval", run, "--threads", "-1"},
	} {
		if status, _, stderr := call(t, args...); status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
		}
	}
}
