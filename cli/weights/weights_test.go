//go:build !windows

package weights

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The weights of a residual network survive a file bit for bit; filters have PyTorch's layout.
func TestWeightsOfResNet(t *testing.T) {
	net := residual(t)
	x, buffers := net.Init(3), net.InitBuffers()
	s := rng.New(1, "buffers")
	for k := range buffers {
		buffers[k] += s.Float32()
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := Save(path, Tensors(net, x, buffers, 77), Metadata("run", "mean", 77, net, train.Default())); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path, net, Options{})
	if err != nil || !slices.Equal(got.X, x) || !slices.Equal(got.Buffers, buffers) || got.Batches != 77 {
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

// A file that does not fit is refused, and the error names the tensor.
func TestInitRefuses(t *testing.T) {
	net := residual(t)
	dir := t.TempDir()
	good := func() []safetensors.Tensor { return Tensors(net, net.Init(3), net.InitBuffers(), 0) }
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
		"nan": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[find(ts, "layer1.0.conv1.weight")].Values.([]float32)[3] = float32(math.NaN())
			return ts
		}, []string{`"layer1.0.conv1.weight"`, "NaN at place 3"}},
		"inf": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			ts[find(ts, "bn1.running_var")].Values.([]float32)[0] = float32(math.Inf(1))
			return ts
		}, []string{`"bn1.running_var"`, "+Inf at place 0"}},
		"checkpoint": {func([]safetensors.Tensor) []safetensors.Tensor {
			return []safetensors.Tensor{{Name: "agent0/x", Shape: []int{1}, Values: []float32{1}}}
		}, []string{"fspda export"}},
		"type": {func(ts []safetensors.Tensor) []safetensors.Tensor {
			at := find(ts, "fc.bias")
			ts[at].Values = make([]uint8, 10)
			return append(slices.Delete(ts, at, at+1), safetensors.Tensor{Name: "fc.bias", Shape: []int{10},
				Values: make([]uint8, 10)})
		}, []string{`"fc.bias"`, "U8", "F32"}},
	} {
		path := filepath.Join(dir, name)
		if err := Save(path, c.edit(good()), nil); err != nil {
			t.Fatal(err)
		}
		_, err := Read(path, net, Options{})
		if _, ok := errors.AsType[*train.ConfigError](err); !ok {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, w := range append(c.want, path, "init") {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not mention %q", name, err, w)
			}
		}
	}
}

// Names of wrapped networks and of Hugging Face's ResNet are those of the same tensors; 16-bit
// numbers are converted.
func TestReadsOtherNames(t *testing.T) {
	net := residual(t)
	x, buffers := net.Init(3), net.InitBuffers()
	for k := range x { // what 16 bits hold
		x[k] = math.Float32frombits(math.Float32bits(x[k]) & 0xffff0000)
	}
	ts := Tensors(net, x, buffers, 5)
	theirs := strings.NewReplacer("layer1.", "resnet.encoder.stages.0.layers.", "layer2.",
		"resnet.encoder.stages.1.layers.",
		"layer3.", "resnet.encoder.stages.2.layers.", ".conv1.", ".layer.0.convolution.", ".bn1.",
		".layer.0.normalization.",
		".conv2.", ".layer.1.convolution.", ".bn2.", ".layer.1.normalization.", "downsample.0", "shortcut.convolution",
		"downsample.1", "shortcut.normalization", "fc.", "classifier.1.")
	for name, rename := range map[string]func(string) string{
		"wrapped": func(n string) string { return "module._orig_mod." + n },
		"hugging face": func(n string) string {
			n = strings.Replace(n, "conv1.", "resnet.embedder.embedder.convolution.",
				btoi(strings.HasPrefix(n, "conv1.")))
			n = strings.Replace(n, "bn1.", "resnet.embedder.embedder.normalization.",
				btoi(strings.HasPrefix(n, "bn1.")))
			return theirs.Replace(n)
		},
	} {
		path := filepath.Join(t.TempDir(), "w.safetensors")
		writeBF16(t, path, ts, rename)
		w, err := Read(path, net, Options{})
		if err != nil || !slices.Equal(w.X, x) || !slices.Equal(w.Buffers, buffers) || w.Batches != 5 {
			t.Errorf("%s: other weights came back, %v", name, err)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// writeBF16 writes tensors under other names, floating-point ones as BF16.
func writeBF16(t *testing.T, path string, ts []safetensors.Tensor, rename func(string) string) {
	t.Helper()
	header, at, data := map[string]any{}, 0, []byte{}
	for _, s := range ts {
		dtype := "I64"
		switch v := s.Values.(type) {
		case []float32:
			dtype = "BF16"
			for _, f := range v {
				data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(f)>>16))
			}
		case []int64:
			data = binary.LittleEndian.AppendUint64(data, uint64(v[0]))
		}
		header[rename(s.Name)] = map[string]any{"dtype": dtype, "shape": s.Shape, "data_offsets": []int{at, len(data)}}
		at = len(data)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	if err := os.WriteFile(path, append(file, data...), 0o644); err != nil {
		t.Fatal(err)
	}
}

// With a new head the last layer is that of the options, whatever the file's has.
func TestNewHead(t *testing.T) {
	from := residual(t)
	to, err := model.Open("resnet20", model.Options{Shape: []int{48, 40, 3}, Classes: 7})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := Save(path, Tensors(from, from.Init(3), from.InitBuffers(), 9), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, to, Options{}); err == nil || !strings.Contains(err.Error(), "init_head new") {
		t.Errorf("error %v", err)
	}
	fresh := to.Init(4)
	w, err := Read(path, to, Options{NewHead: fresh})
	if err != nil {
		t.Fatal(err)
	}
	for _, tensor := range to.Layout().Tensors() {
		want := from.Layout().View(from.Init(3), tensor.Name)
		if strings.HasPrefix(tensor.Name, "fc.") {
			want = to.Layout().View(fresh, tensor.Name)
		}
		if !slices.Equal(to.Layout().View(w.X, tensor.Name), want) {
			t.Errorf("%s is another", tensor.Name)
		}
	}
}

// A network that a format cannot hold is refused with the layer, and no advice about the disk.
func TestSaveRefusesNetwork(t *testing.T) {
	net, err := model.Open("resnet20-gn", model.Options{Shape: []int{32, 32, 3}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "w.onnx")
	err = SaveONNX(path, net, net.Init(1), nil, Metadata("run", "mean", 7, net, train.Default()))
	if err == nil || strings.Contains(err.Error(), "make room") || !strings.Contains(err.Error(), "no ONNX operator") ||
		!strings.Contains(err.Error(), "--format") {
		t.Errorf("group norm as ONNX: %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("half a file was left")
	}
}
