//go:build !windows

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/internal/rng"
	"fspda/model"
	"fspda/model/onnx"
	"fspda/train"
	"fspda/train/safetensors"
)

// A run that starts from what another left has its accuracy at iteration 0: of the mean, an agent,
// and the best.
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

// The ONNX file of a run has the model that its weight file has.
func TestExportONNX(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, quick("--out", dir, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{{"export", dir, "--agent", "1"}, {"export", dir, "--agent", "1", "--format",
		"onnx"}} {
		if status, stdout, stderr := call(t, args...); status != 0 ||
			!strings.Contains(stdout, "4 tensors, 4,780 parameters") {
			t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
		}
	}
	net, err := model.Open("mlp", model.Options{Shape: []int{28, 28}, Classes: 10, Hidden: []int{6}})
	if err != nil {
		t.Fatal(err)
	}
	x, _, err := readWeights(filepath.Join(dir, "agent1.safetensors"), net)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := onnx.Write(&want, net, x, nil, about(dir, "agent1", 40, net)); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "agent1.onnx"))
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%d bytes, want %d with the same model, %v", len(got), want.Len(), err)
	}
}

// lastRow is the last line of metrics.jsonl.
func lastRow(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	row := map[string]float64{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &row); err != nil {
		t.Fatal(err)
	}
	return row
}

func residual(t *testing.T) *model.Network {
	t.Helper()
	net, err := model.Open("resnet20", model.Options{Shape: []int{32, 32, 3}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// A residual network goes to a file and comes back to the bit; filters lie as PyTorch has them.
func TestWeightsOfResNet(t *testing.T) {
	net := residual(t)
	x, buffers := net.Init(3), net.InitBuffers()
	s := rng.New(1, "buffers")
	for k := range buffers {
		buffers[k] += s.Float32()
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := saveWeights(path, weights(net, x, buffers, 77), about("run", "mean", 77, net)); err != nil {
		t.Fatal(err)
	}
	gotX, gotBuffers, err := readWeights(path, net)
	if err != nil || !slices.Equal(gotX, x) || !slices.Equal(gotBuffers, buffers) {
		t.Fatalf("other weights came back, %v", err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Info("conv1.weight")
	if !slices.Equal(info.Shape, []int{16, 3, 3, 3}) {
		t.Errorf("conv1.weight has shape %v", info.Shape)
	}
	w, err := safetensors.Load[float32](f, "layer2.0.conv1.weight") // 32 outputs of 16 inputs, 3×3
	if err != nil {
		t.Fatal(err)
	}
	ours := net.Layout().View(x, "layer2.0.conv1.weight")
	for _, at := range [][4]int{{0, 0, 0, 0}, {31, 15, 2, 2}, {7, 3, 1, 2}} {
		o, i, h, v := at[0], at[1], at[2], at[3]
		if a, b := w[((o*16+i)*3+h)*3+v], ours[((o*3+h)*3+v)*16+i]; a != b {
			t.Errorf("output %d, input %d, place %d %d: %v in the file, %v in the network", o, i, h, v, a, b)
		}
	}
	if n, err := safetensors.Load[int64](f, "bn1.num_batches_tracked"); err != nil || n[0] != 77 {
		t.Errorf("batches %v, %v", n, err)
	}
}

// A file that does not fit is refused, and the tensor named.
func TestInitRefuses(t *testing.T) {
	net := residual(t)
	dir := t.TempDir()
	good := func() []safetensors.Tensor { return weights(net, net.Init(3), net.InitBuffers(), 0) }
	find := func(ts []safetensors.Tensor, name string) int {
		return slices.IndexFunc(ts, func(t safetensors.Tensor) bool { return t.Name == name })
	}
	for name, c := range map[string]struct {
		edit func(ts []safetensors.Tensor) []safetensors.Tensor
		want []string
	}{
		"missing": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			at := find(ts, "fc.bias")
			return slices.Delete(ts, at, at+1)
		}, []string{`no tensor "fc.bias"`}},
		"missing buffer": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			at := find(ts, "bn1.running_var")
			return slices.Delete(ts, at, at+1)
		}, []string{`no tensor "bn1.running_var"`}},
		"extra": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			return append(ts, safetensors.Tensor{Name: "head.bias", Shape: []int{1}, Values: []float32{1}})
		}, []string{`"head.bias"`, "another network"}},
		"misshapen": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[find(ts, "fc.weight")].Shape = []int{64, 10}
			return ts
		}, []string{`"fc.weight"`, "[64 10]", "want [10 64]"}},
		"type": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			at := find(ts, "fc.bias")
			ts[at].Values = make([]uint8, 10)
			return append(slices.Delete(ts, at, at+1), safetensors.Tensor{Name: "fc.bias", Shape: []int{10},
				Values: make([]uint8, 10)})
		}, []string{`"fc.bias"`, "U8", "F32"}},
	} {
		path := filepath.Join(dir, name)
		if err := saveWeights(path, c.edit(good()), nil); err != nil {
			t.Fatal(err)
		}
		_, _, err := readWeights(path, net)
		var ce *train.ConfigError
		if !errors.As(err, &ce) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, w := range append(c.want, path, "init") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not mention %q", name, err, w)
			}
		}
	}
	path := filepath.Join(dir, "text")
	if err := os.WriteFile(path, []byte("hello, this is no tensor"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, quick("--out", filepath.Join(dir, "run"), "--init",
		path)...); status != exitBadInput || !strings.Contains(stderr, "init") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}

func TestExportRefuses(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if status, _, stderr := call(t, quick("--out", run, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	for want, args := range map[string][]string{
		"holds no run":       {dir},
		"agents 0 to 4":      {run, "--agent", "5"},
		"leave --agent out":  {run, "--agent", "1", "--best"},
		"one run folder":     {},
		"format \"pickle\"":  {run, "--format", "pickle"},
		"cannot be written":  {run, "--out", filepath.Join(dir, "none", "w")},
		"choose another":     {run, "--format", "onnx", "--out", filepath.Join(dir, "none", "w")},
		"unknown flag: --ag": {run, "--ag", "1"},
	} {
		if status, _, stderr := call(t, append([]string{"export"}, args...)...); status != exitBadInput ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d, %s", args, status, stderr)
		}
	}
}
