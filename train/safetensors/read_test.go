package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// raw builds a file from arbitrary parts.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.safetensors")
	if err := os.WriteFile(path, write(t, []Tensor{{"w", []int{2}, []float32{1, 2}}}, nil), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Section("w")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(s); err != nil || !bytes.Equal(b, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}) {
		t.Errorf("section % x, %v", b, err)
	}
	for _, err := range []error{
		LoadInto(f, "v", []float32{0}), LoadInto(f, "w", []float32{0}), LoadInto(f, "w",
			[]float64{0, 0}), second(Load[float32](f, "v")),
		second(Load[uint8](f, "w")), second(f.Section("v")),
	} {
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `tensor "`) {
			t.Errorf("error %v, want the file and the tensor in it", err)
		}
	}
	if _, ok := f.Info("v"); ok {
		t.Error("found a tensor that is not there")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := LoadInto(f, "w", make([]float32, 2)); err == nil || !strings.Contains(err.Error(),
		`tensor "w", from element 0`) {
		t.Errorf("closed file: %v", err)
	}
	if err := f.Close(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("second close: %v", err)
	}
	if err := open(t, raw("{}", 0)).Close(); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("short"), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{bad: "file is 5 bytes", dir: "is not a regular file",
		filepath.Join(dir, "no"): "no such file"} {
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
			path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestReadPrefix(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, maxHeader+1)
	beyond := binary.LittleEndian.AppendUint64(nil, 50)
	for want, b := range map[string][]byte{
		"file is 0 bytes":            {},
		"file is 7 bytes":            make([]byte, 7),
		"the format allows":          append(huge, "{}"...),
		"only 2 bytes follow it":     append(beyond, "{}"...),
		"header length is 184467440": bytes.Repeat([]byte{255}, 20),
		"does not start with '{'":    raw("", 0),
	} {
		if _, err := Read(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// fails is a reader that fails from a given byte on.
type fails struct {
	b  []byte
	at int64
}

var errDisk = errors.New("bad sector")

func (f fails) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.at {
		return 0, errDisk
	}
	return bytes.NewReader(f.b).ReadAt(p, off)
}

func TestReadFails(t *testing.T) {
	b := write(t, []Tensor{{"w", []int{2 * chunk}, make([]float32, 2*chunk)}}, nil)
	size := int64(len(b))
	for _, at := range []int64{0, 8, 20} {
		if _, err := Read(fails{b, at}, size); !errors.Is(err, errDisk) {
			t.Errorf("readable up to %d: %v", at, err)
		}
	}
	f, err := Read(fails{b, size - 1}, size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load[float32](f, "w"); !errors.Is(err, errDisk) || !strings.Contains(err.Error(),
		"from element 8192") {
		t.Errorf("load: %v", err)
	}
	// A file that shrinks after its header was read.
	f, err = Read(bytes.NewReader(b[:size-1]), size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load[float32](f, "w"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("shrunk: %v", err)
	}
}

// For any input: Read returns, accepts only complete files, and accepted files can be loaded and
// written again with the same contents.
func FuzzRead(f *testing.F) {
	g, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(g)
	for _, c := range headers {
		f.Add(raw(c.header, c.data))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		total := 8 + int64(binary.LittleEndian.Uint64(b))
		var tensors []Tensor
		for _, info := range file.Tensors() {
			if info.Offset != total {
				t.Fatalf("%+v starts at %d, want %d", info, info.Offset, total)
			}
			total += info.Size
			w := Tensor{Name: info.Name, Shape: info.Shape}
			switch info.DType {
			case F32:
				w.Values, err = Load[float32](file, info.Name)
			case F64:
				w.Values, err = Load[float64](file, info.Name)
			case I64:
				w.Values, err = Load[int64](file, info.Name)
			case U64:
				w.Values, err = Load[uint64](file, info.Name)
			case U8:
				w.Values, err = Load[uint8](file, info.Name)
			default:
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			tensors = append(tensors, w)
		}
		if total != int64(len(b)) {
			t.Fatalf("tensors end at %d, the file at %d", total, len(b))
		}
		again := open(t, write(t, tensors, file.Metadata()))
		for _, w := range tensors {
			checkTensor(t, again, w)
		}
	})
}

func BenchmarkLoadInto(b *testing.B) {
	v := make([]float32, 1<<20)
	f := open(b, write(b, []Tensor{{"v", []int{len(v)}, v}}, nil))
	b.SetBytes(4 << 20)
	for b.Loop() {
		if err := LoadInto(f, "v", v); err != nil {
			b.Fatal(err)
		}
	}
}
