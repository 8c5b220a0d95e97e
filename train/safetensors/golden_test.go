package safetensors

import (
	"bytes"
	"math"
	"os"
	"slices"
	"testing"
)

const golden = "testdata/golden.safetensors"

// goldenTensors are the contents of the golden file, in order; testdata/README.md describes its
// origin.
func goldenTensors() []Tensor {
	return []Tensor{
		{"count", []int{1}, []uint64{1<<63 + 1}},
		{"delta", []int{2}, []int64{-5, 7}},
		{"precise", nil, []float64{math.Pi}},
		{"empty", []int{0, 4}, []float32{}},
		{"layer.bias", []int{2}, []float32{0.1, 0.2}},
		{"layer.weight", []int{2, 3}, []float32{1.5, -2.25, 3, 0, float32(math.Copysign(0, -1)), 1e-30}},
		{"bytes", []int{3}, []uint8{0, 1, 255}},
	}
}

func TestGoldenRead(t *testing.T) {
	f, err := Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if m := f.Metadata(); len(m) != 1 || m["format"] != "np" {
		t.Errorf("metadata %v", m)
	}
	want := goldenTensors()
	if len(f.Tensors()) != len(want) {
		t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(want))
	}
	for _, w := range want {
		checkTensor(t, f, w)
	}
}

// checkTensor compares a tensor of a file with what was written, bit by bit.
func checkTensor(t *testing.T, f *File, want Tensor) {
	t.Helper()
	info, ok := f.Info(want.Name)
	dtype, n, _ := dtypeOf(want.Values)
	if !ok || info.DType != dtype || !slices.Equal(info.Shape, want.Shape) {
		t.Errorf("%q: %+v, want %s %v", want.Name, info, dtype, want.Shape)
		return
	}
	var got any
	var err error
	switch want.Values.(type) {
	case []float32:
		got, err = Load[float32](f, want.Name)
	case []float64:
		got, err = Load[float64](f, want.Name)
	case []int64:
		got, err = Load[int64](f, want.Name)
	case []uint64:
		got, err = Load[uint64](f, want.Name)
	case []uint8:
		got, err = Load[uint8](f, want.Name)
	}
	if err != nil {
		t.Error(err)
		return
	}
	if a, b := encode(make([]byte, 8*n), got), encode(make([]byte, 8*n), want.Values); !bytes.Equal(a, b) {
		t.Errorf("%q: %v, want %v", want.Name, got, want.Values)
	}
}

func TestGoldenWrite(t *testing.T) {
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, goldenTensors(), map[string]string{"format": "np"}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("wrote\n%q, want\n%q", b.Bytes(), want)
	}
}
