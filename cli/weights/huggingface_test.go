package weights

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
)

// timm and transformers load our ResNet-18 and predict the same logits; we read the names of a
// ResNet of transformers. FSPDA_PEERS names a Python that has both; make peers makes one.
func TestHuggingFace(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("set FSPDA_PEERS to a Python with timm and transformers, such as that of make peers")
	}
	if out, err := exec.Command(python, "-c", "import timm, transformers").CombinedOutput(); err != nil {
		t.Skipf("the Python of FSPDA_PEERS has no timm or no transformers: install both\n%s", out)
	}
	const side, batch = 64, 3
	net, err := model.Open("resnet18", model.Options{Shape: []int{side, side, 3}, Classes: 7})
	if err != nil {
		t.Fatal(err)
	}
	s := rng.New(1, "hugging face")
	b := device.Batch{X: make([]float32, batch*side*side*3), Y: make([]int32, batch)}
	for k := range b.X {
		b.X[k] = float32(s.Norm())
	}
	x, dir := net.Init(1), t.TempDir()
	buffers := observed(t, net, x, b)
	if err := SaveHuggingFace(filepath.Join(dir, "export"), "resnet18", net, Tensors(net, x, buffers, 7),
		Preprocessing{Mean: []float32{0.5, 0.25, 0.125}, Std: []float32{0.5, 0.5, 0.25}, Crop: 0.875},
		Metadata("run", "mean", 7, net, train.Default())); err != nil {
		t.Fatal(err)
	}
	if err := Save(filepath.Join(dir, "images.safetensors"), []safetensors.Tensor{{Name: "images",
		Shape: []int{batch, side, side, 3}, Values: b.X}}, nil); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, filepath.Join("..", "..", "bench", "peers", "huggingface.py"), dir)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "HF_HOME="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	theirs, err := Read(filepath.Join(dir, "theirs.safetensors"), net, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(filepath.Join(dir, "logits.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own := predict(t, net, x, buffers, b)
	for name, ours := range map[string][]float64{"timm": own, "transformers": own,
		"theirs": predict(t, net, theirs.X, theirs.Buffers, b)} {
		want, err := safetensors.Load[float32](f, name)
		if err != nil {
			t.Fatal(err)
		}
		far, largest := 0.0, 0.0
		for k, v := range ours {
			far, largest = math.Max(far, math.Abs(v-float64(want[k]))), math.Max(largest, math.Abs(float64(want[k])))
		}
		t.Logf("%s: logits up to %.3g, largest difference %.2g", name, largest, far)
		if !(far <= 1e-4*largest) || largest < 1e-3 {
			t.Errorf("%s: the logits differ by up to %g, of %g", name, far, largest)
		}
	}
}

// Networks that timm and transformers do not know are refused.
func TestHuggingFaceRefuses(t *testing.T) {
	err := SaveHuggingFace(t.TempDir(), "resnet20", residual(t), nil, Preprocessing{}, nil)
	if err == nil || !strings.Contains(err.Error(), "resnet18") || !strings.Contains(err.Error(),
		"safetensors or onnx") {
		t.Errorf("error %v", err)
	}
}

// A folder whose weights are divided into several files is refused, with what to do.
func TestHuggingFaceShards(t *testing.T) {
	dir := t.TempDir()
	index := filepath.Join(dir, "model.safetensors.index.json")
	if err := os.WriteFile(index, []byte(`{"weight_map":{}}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir, residual(t), Options{}); err == nil || !strings.Contains(err.Error(), "max_shard_size") {
		t.Errorf("error %v, want it to say how to write one file", err)
	}
}

func residual(t *testing.T) *model.Network {
	t.Helper()
	net, err := model.Open("resnet20", model.Options{Shape: []int{32, 32, 3}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	return net
}
