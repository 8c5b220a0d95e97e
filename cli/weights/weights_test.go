//go:build !windows

package weights

import (
	"errors"
	"fspda/internal/rng"
	"fspda/model"
	"fspda/train"
	"fspda/train/safetensors"
	"math"
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
	if err := Save(path, Tensors(net, x, buffers, 77), Metadata("run", "mean", 77, net)); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path, net)
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
		_, err := Read(path, net)
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
}

func residual(t *testing.T) *model.Network {
	t.Helper()
	net, err := model.Open("resnet20", model.Options{Shape: []int{32, 32, 3}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	return net
}
