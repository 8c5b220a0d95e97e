package weights

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train"
)

// ONNX's checker accepts our files, and ONNX Runtime predicts the same logits. FSPDA_PEERS names a
// Python that has both; make peers makes one.
func TestONNXRuntime(t *testing.T) {
	python := onnxPython(t)
	const batch = 3
	dir := t.TempDir()
	want := map[string][]float64{}
	for name, open := range map[string]struct {
		network string
		options model.Options
	}{
		"mlp": {"mlp", model.Options{Shape: []int{28, 28}, Classes: 10, Hidden: []int{100}}},
		"mlp relu": {"mlp", model.Options{Shape: []int{28, 28}, Classes: 10, Hidden: []int{50, 20},
			Activation: "relu"}},
		"resnet18": {"resnet18", model.Options{Shape: []int{64, 48, 3}, Classes: 100}},
		"resnet20": {"resnet20", model.Options{Shape: []int{32, 32, 3}, Classes: 10}},
		"resnet50": {"resnet50", model.Options{Shape: []int{64, 64, 3}, Classes: 1000}},
	} {
		net, err := model.Open(open.network, open.options)
		if err != nil {
			t.Fatal(err)
		}
		s := rng.New(1, "onnx")
		b := device.Batch{X: make([]float32, batch*net.Inputs()), Y: make([]int32, batch)}
		for k := range b.X {
			b.X[k] = float32(s.Norm())
		}
		x := net.Init(1)
		buffers := observed(t, net, x, b)
		for k, v := range net.InitBuffers() {
			// as during training: with the statistics of three images every rounding error is
			// enlarged
			buffers[k] = (buffers[k] + v) / 2
		}
		if err := SaveONNX(filepath.Join(dir, name+".onnx"), net, x, buffers,
			Metadata("run", "mean", 7, net, train.Default())); err != nil {
			t.Fatal(err)
		}
		if image := net.Image(); image != nil { // height and width are free
			open.options.Shape = []int{image[0] + 8, image[1] + 24, image[2]}
			if net, err = model.Open(open.network, open.options); err != nil {
				t.Fatal(err)
			}
			b.X = make([]float32, batch*net.Inputs())
			for k := range b.X {
				b.X[k] = float32(s.Norm())
			}
		}
		want[name] = predict(t, net, x, buffers, b)
		shape := []int{batch, net.Inputs()}
		if image := net.Image(); image != nil {
			shape = []int{batch, image[2], image[0], image[1]}
		}
		if err := os.WriteFile(filepath.Join(dir, name+".shape"), []byte(strings.Trim(fmt.Sprint(shape), "[]")),
			0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".input"), float32Bytes(channelsFirst(b.X, net.Image())),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
	comparePredictions(t, python, dir, want)
}

// ONNX Runtime predicts what follows each token as our language models do.
func TestONNXRuntimeLanguageModels(t *testing.T) {
	python := onnxPython(t)
	const batch = 3
	dir, want := t.TempDir(), map[string][]float64{}
	erf := model.Transformer{GELU: "erf", NoBias: true}
	for name, open := range map[string]struct {
		network string
		options model.Options
	}{
		"gpt":   {"gpt-nano", model.Options{Classes: 65}},
		"erf":   {"gpt-nano", model.Options{Classes: 65, Transformer: erf}},
		"short": {"gpt-nano", model.Options{Classes: 65, Shape: []int{40}}},
		"llama": {"llama-nano", model.Options{Classes: 65}},
	} {
		net, err := model.Open(open.network, open.options)
		if err != nil {
			t.Fatal(err)
		}
		x := varied(net.Dim())
		if err := SaveONNX(filepath.Join(dir, name+".onnx"), net, x, nil,
			Metadata("run", "mean", 7, net, train.Default())); err != nil {
			t.Fatal(err)
		}
		s, tokens := rng.New(1, "onnx"), make([]uint16, batch*net.Inputs())
		var input []byte
		for i := range tokens {
			tokens[i] = uint16(s.IntN(net.Classes()))
			input = binary.LittleEndian.AppendUint64(input, uint64(tokens[i]))
		}
		want[name] = eachNext(t, net, x, tokens)
		for end, content := range map[string][]byte{".input": input,
			".shape": fmt.Appendf(nil, "%d %d", batch, net.Inputs())} {
			if err := os.WriteFile(filepath.Join(dir, name+end), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	comparePredictions(t, python, dir, want)
}

// eachNext returns the logits after each token of some windows.
func eachNext(t *testing.T, net *model.Network, x []float32, tokens []uint16) []float64 {
	t.Helper()
	dev := cpu.New()
	defer dev.Close()
	v := dev.NewVector(len(x))
	dev.Write(v, x)
	engine, out := model.NewEngine(net, dev), make([]float64, len(tokens)*net.Classes())
	for i := range tokens {
		from := i / net.Inputs() * net.Inputs()
		if err := engine.Next(out[i*net.Classes():][:net.Classes()], v, tokens[from:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// onnxPython returns the Python of FSPDA_PEERS, or skips the test.
func onnxPython(t *testing.T) string {
	t.Helper()
	python := os.Getenv("FSPDA_PEERS")
	if python == "" {
		t.Skip("set FSPDA_PEERS to a Python with onnx and onnxruntime, such as that of make peers")
	}
	if out, err := exec.Command(python, "-c", "import onnx, onnxruntime").CombinedOutput(); err != nil {
		t.Skipf("the Python of FSPDA_PEERS has no onnx or no onnxruntime: install both\n%s", out)
	}
	return python
}

// comparePredictions compares the logits of ONNX Runtime for the files of a folder with ours.
func comparePredictions(t *testing.T, python, dir string, want map[string][]float64) {
	t.Helper()
	if out, err := exec.Command(python, filepath.Join("..", "..", "bench", "peers", "predict.py"),
		dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, ours := range want {
		text, err := os.ReadFile(filepath.Join(dir, name+".logits"))
		if err != nil || len(text) != 4*len(ours) {
			t.Fatalf("%s: %d bytes of logits, want %d, %v", name, len(text), 4*len(ours), err)
		}
		far, largest := 0.0, 0.0
		for k, v := range ours {
			theirs := float64(math.Float32frombits(binary.LittleEndian.Uint32(text[4*k:])))
			far, largest = math.Max(far, math.Abs(v-theirs)), math.Max(largest, math.Abs(theirs))
		}
		t.Logf("%s: logits up to %.3g, largest difference %.2g", name, largest, far)
		if !(far <= 1e-4*largest) || largest < 1e-3 {
			t.Errorf("%s: the logits differ by up to %g, of %g", name, far, largest)
		}
	}
}

// channelsFirst converts images from N×H×W×C to N×C×H×W. Without image dimensions it does nothing.
func channelsFirst(x []float32, image []int) []float32 {
	if image == nil {
		return x
	}
	pixels, channels := image[0]*image[1], image[2]
	turned := make([]float32, len(x))
	for i, v := range x {
		n, pixel, c := i/(pixels*channels), i/channels%pixels, i%channels
		turned[(n*channels+c)*pixels+pixel] = v
	}
	return turned
}

func float32Bytes(x []float32) []byte {
	var b bytes.Buffer
	for _, v := range x {
		b.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
	return b.Bytes()
}
