package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"fspda/internal/rng"
)

// write returns a file in memory.
func write(t testing.TB, tensors []Tensor, metadata map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(t testing.TB, b []byte) *File {
	t.Helper()
	f, err := Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// randomTensors returns tensors of all types, empty ones, scalars and some longer than a chunk.
func randomTensors(s rng.Stream) []Tensor {
	tensors := make([]Tensor, s.IntN(8))
	for i := range tensors {
		shape := make([]int, s.IntN(4))
		n := 1
		for k := range shape {
			shape[k] = s.IntN(6)
			n *= shape[k]
		}
		if s.IntN(4) == 0 {
			n = chunk - 1 + s.IntN(chunk)
			shape = []int{n}
		}
		t := Tensor{Name: fmt.Sprintf("t%d/\"<%c>\n", i, 'α'+rune(s.IntN(9))), Shape: shape}
		switch s.IntN(5) {
		case 0:
			t.Values = fill(n, func() float32 { return math.Float32frombits(uint32(s.Uint64())) })
		case 1:
			t.Values = fill(n, func() float64 { return math.Float64frombits(s.Uint64()) })
		case 2:
			t.Values = fill(n, func() int64 { return int64(s.Uint64()) })
		case 3:
			t.Values = fill(n, s.Uint64)
		default:
			t.Values = fill(n, func() uint8 { return uint8(s.Uint64()) })
		}
		tensors[i] = t
	}
	return tensors
}

func fill[T Element](n int, next func() T) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = next()
	}
	return v
}

func TestRoundTrip(t *testing.T) {
	for k := range uint64(60) {
		tensors := randomTensors(rng.New(1, "safetensors", k))
		metadata := map[string]string{"a": "1", "ключ": "\"</x>\u2028"}
		if k%3 == 0 {
			metadata = nil
		}
		b := write(t, tensors, metadata)
		if n := binary.LittleEndian.Uint64(b); n%8 != 0 {
			t.Errorf("case %d: header of %d bytes is not padded", k, n)
		}
		f := open(t, b)
		if len(f.Tensors()) != len(tensors) || len(f.Metadata()) != len(metadata) {
			t.Fatalf("case %d: %d tensors, %d metadata", k, len(f.Tensors()), len(f.Metadata()))
		}
		for key, v := range metadata {
			if f.Metadata()[key] != v {
				t.Errorf("case %d: metadata %q is %q", k, key, f.Metadata()[key])
			}
		}
		for _, w := range tensors {
			checkTensor(t, f, w)
		}
		if again := write(t, tensors, metadata); !bytes.Equal(b, again) {
			t.Errorf("case %d: the same tensors gave other bytes", k)
		}
	}
}

func TestWriteOrder(t *testing.T) {
	b := write(t, []Tensor{{"z", []int{1}, []uint8{7}}, {"a", []int{1}, []float32{1}}}, nil)
	got := open(t, b).Tensors()
	if got[0].Name != "z" || got[1].Name != "a" || got[1].Offset != got[0].Offset+1 ||
		!bytes.HasSuffix(b, []byte{7, 0, 0, 0x80, 0x3f}) {
		t.Errorf("%+v", got)
	}
}

func TestWriteErrors(t *testing.T) {
	one := []float32{1}
	for want, tensors := range map[string][]Tensor{
		`"__metadata__": the name is reserved`:       {{"__metadata__", nil, one}},
		`"w": given twice`:                           {{"w", nil, one}, {"w", nil, one}},
		`"\xff": the name is not valid UTF-8`:        {{"\xff", nil, one}},
		`"w": shape [2] does not match its 1 values`: {{"w", []int{2}, one}},
		`"w": shape [-1] has a negative dimension`:   {{"w", []int{-1}, one}},
		`"w": values are []int16, want []float32`:    {{"w", []int{1}, []int16{1}}},
		`"w": values are <nil>`:                      {{"w", nil, nil}},
		fmt.Sprintf("shape [%d %[1]d]", math.MaxInt): {{"w", []int{math.MaxInt, math.MaxInt}, one}},
		fmt.Sprintf("shape [%d 2]", math.MaxInt):     {{"w", []int{math.MaxInt, 2}, one}},
		fmt.Sprintf("shape [%d 4 0]", math.MaxInt):   {{"w", []int{math.MaxInt, 4, 0}, []float32{}}},
	} {
		var b bytes.Buffer
		err := Write(&b, tensors, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if b.Len() > 0 {
			t.Errorf("%q: %d bytes were written before the error", want, b.Len())
		}
	}
	if err := Write(&bytes.Buffer{}, nil, map[string]string{"k": "\xff"}); err == nil || !strings.Contains(err.Error(),
		`metadata "k"`) {
		t.Errorf("metadata: %v", err)
	}
	if err := Write(&bytes.Buffer{}, nil, map[string]string{"k": strings.Repeat("x", maxHeader)}); err == nil ||
		!strings.Contains(err.Error(), "the format allows") {
		t.Errorf("long header: %v", err)
	}
}

// full is a writer that fails after a number of bytes.
type full int

var errFull = errors.New("disk full")

func (f *full) Write(b []byte) (int, error) {
	if len(b) > int(*f) {
		return int(*f), errFull
	}
	*f -= full(len(b))
	return len(b), nil
}

func TestWriteFull(t *testing.T) {
	tensors := []Tensor{{"first", []int{3}, []uint8{1, 2, 3}}, {"second", []int{2 * chunk}, make([]float32, 2*chunk)}}
	size := len(write(t, tensors, nil))
	for limit, want := range map[int]string{0: "header", size - 8*chunk - 1: `tensor "first"`,
		size - 1: `tensor "second"`} {
		f := full(limit)
		if err := Write(&f, tensors, nil); !errors.Is(err, errFull) || !strings.Contains(err.Error(), want) {
			t.Errorf("room for %d of %d: %v, want %q", limit, size, err, want)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	v := make([]float32, 1<<20)
	b.SetBytes(4 << 20)
	var out bytes.Buffer
	for b.Loop() {
		out.Reset()
		if err := Write(&out, []Tensor{{"v", []int{len(v)}, v}}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
