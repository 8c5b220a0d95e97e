package weights

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train/safetensors"
)

// torchvision loads our ResNet-50 strictly and we load its weights, and both predict the same
// logits. FSPDA_PEERS names a Python that has torchvision and safetensors; make peers makes one.
func TestTorchvision(t *testing.T) {
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("set FSPDA_PEERS to a Python with torchvision and safetensors, such as that of make peers")
	}
	const side, batch, classes = 64, 2, 1000
	net, err := model.Open("resnet50", model.Options{Shape: []int{side, side, 3}, Classes: classes})
	if err != nil {
		t.Fatal(err)
	}
	s := rng.New(1, "torchvision")
	images := make([]float32, batch*side*side*3)
	for k := range images {
		images[k] = float32(s.Norm())
	}
	b := device.Batch{X: images, Y: make([]int32, batch)}
	x := net.Init(1)
	buffers := observed(t, net, x, b)
	dir := t.TempDir()
	for name, ts := range map[string][]safetensors.Tensor{
		"ours": Tensors(net, x, buffers, 7), "images": {{Name: "images", Shape: []int{batch, side, side, 3},
			Values: images}},
	} {
		if err := Save(filepath.Join(dir, name+".safetensors"), ts, nil); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(python, filepath.Join("..", "..", "bench", "peers", "weights.py"),
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	logits, err := safetensors.Open(filepath.Join(dir, "logits.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer logits.Close()
	theirs, err := Read(filepath.Join(dir, "theirs.safetensors"), net, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string][2][]float32{"ours": {x, buffers}, "theirs": {theirs.X, theirs.Buffers}} {
		want, err := safetensors.Load[float32](logits, name)
		if err != nil {
			t.Fatal(err)
		}
		far, largest := 0.0, 0.0
		for k, v := range predict(t, net, w[0], w[1], b) {
			far, largest = math.Max(far, math.Abs(v-float64(want[k]))), math.Max(largest, math.Abs(float64(want[k])))
		}
		t.Logf("%s weights: logits up to %.3g, largest difference %.2g", name, largest, far)
		if !(far <= 1e-4*largest) || largest < 1e-3 {
			t.Errorf("%s weights: the logits differ by up to %g, of %g", name, far, largest)
		}
	}
}

// observed returns the batch norm statistics of a batch, as running statistics.
func observed(t *testing.T, net *model.Network, x []float32, b device.Batch) []float32 {
	t.Helper()
	dev := cpu.New()
	defer dev.Close()
	buffers := net.InitBuffers()
	v, w := dev.NewVector(len(x)), dev.NewVector(len(buffers))
	dev.Write(v, x)
	dev.Write(w, buffers)
	if err := model.NewEngine(net, dev).Observe(v, w, b, 1); err != nil {
		t.Fatal(err)
	}
	dev.Read(buffers, w)
	return buffers
}

func predict(t *testing.T, net *model.Network, x, buffers []float32, b device.Batch) []float64 {
	t.Helper()
	dev := cpu.New()
	defer dev.Close()
	v, w := dev.NewVector(len(x)), dev.NewVector(len(buffers))
	dev.Write(v, x)
	dev.Write(w, buffers)
	out := make([]float64, b.N()*net.Classes())
	if err := model.NewEngine(net, dev).Predict(out, v, w, b); err != nil {
		t.Fatal(err)
	}
	return out
}
