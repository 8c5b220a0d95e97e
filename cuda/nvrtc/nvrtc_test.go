package nvrtc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cuda/dynlib"
	"fspda/internal/testing/ptxas"
)

func library(t *testing.T) *Library {
	t.Helper()
	for _, major := range []int{13, 12} {
		if h, err := dynlib.System().Open(dynlib.NVRTC(major)); err == nil {
			l, err := Open(h)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
	}
	t.Skipf("NVRTC is not found: set %s to a folder with it", dynlib.PathVariable)
	return nil
}

var source = Source{
	Name:    "half.cu",
	Text:    "#include \"by.cuh\"\nextern \"C\" __global__ void half(float *x) { x[threadIdx.x] *= BY; }\n",
	Headers: map[string]string{"by.cuh": "#define BY 0.5f\n"},
	Arch:    "sm_80",
	Options: []string{"--std=c++17", "--ptxas-options=-v"},
}

func TestCompile(t *testing.T) {
	l := library(t)
	if !l.Supports("sm_80") || l.Supports("sm_1") || l.Major < 11 {
		t.Errorf("NVRTC %d.%d supports sm_80: %v, sm_1: %v", l.Major, l.Minor, l.Supports("sm_80"), l.Supports("sm_1"))
	}
	b, err := l.Compile(source)
	if err != nil {
		t.Fatal(err)
	}
	u := ptxas.UsageOf(b.Log)["half"]
	if !strings.HasPrefix(string(b.Cubin), "\x7fELF") || u.Registers == 0 || u.Spilled != 0 {
		t.Errorf("%d bytes of code that uses %+v; the log: %s", len(b.Cubin), u, b.Log)
	}
}

// The error of a source that does not compile names the source and the architecture, and includes
// the compiler's message.
func TestCompileError(t *testing.T) {
	l := library(t)
	bad := source
	bad.Text = "__global__ void half(float *x) { y = 1; }\n"
	_, err := l.Compile(bad)
	if _, ok := errors.AsType[*CompileError](err); !ok {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"half.cu", "sm_80", `"y" is undefined`, "NVRTC_ERROR_COMPILATION"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	bad = source
	bad.Arch = "sm_1"
	if _, err := l.Compile(bad); err == nil || !strings.Contains(err.Error(), "sm_1") {
		t.Errorf("an unknown architecture: %v", err)
	}
}

// countingCompiler is a Compiler that counts its calls and needs no library.
type countingCompiler struct{ calls int }

func (c *countingCompiler) Compile(s Source) (Binary, error) {
	c.calls++
	return Binary{Cubin: []byte("code of " + s.Text + s.Arch), Log: "log\nof it"}, nil
}

// A cubin is read from the folder unless any of its inputs changed or the file is damaged.
func TestCache(t *testing.T) {
	by := &countingCompiler{}
	c := &Cache{Dir: filepath.Join(t.TempDir(), "a", "b"), Version: "nvrtc 1.0"}
	get := func(s Source, calls int) {
		t.Helper()
		b, err := c.Compile(by, s)
		if err != nil || string(b.Cubin) != "code of "+s.Text+s.Arch || b.Log != "log\nof it" {
			t.Errorf("%q, %q, %v", b.Cubin, b.Log, err)
		}
		if by.calls != calls {
			t.Errorf("%d compilations, want %d", by.calls, calls)
		}
		by.calls = 0
	}
	get(source, 1)
	get(source, 0)
	for _, change := range []func(*Source){
		func(s *Source) { s.Text += " " },
		func(s *Source) { s.Arch = "sm_90" },
		func(s *Source) { s.Options = s.Options[:1] },
		func(s *Source) { s.Headers = map[string]string{"by.cuh": "#define BY 2\n"} },
		func(s *Source) { s.Name += "h" },
	} {
		other := source
		change(&other)
		get(other, 1)
		get(other, 0)
	}
	c.Version = "nvrtc 1.1"
	get(source, 1)
	files, err := filepath.Glob(filepath.Join(c.Dir, "*"))
	if err != nil || len(files) != 7 {
		t.Fatalf("%d files, want 7: %v", len(files), err)
	}
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		func(b []byte) []byte { b[len(magic)+40] ^= 0x80; return b },
	} {
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) == 0 { // another one, damaged before
				continue
			}
			if err := os.WriteFile(f, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		get(source, 1)
		get(source, 0)
	}
}

// If the folder cannot be written, every call compiles.
func TestCacheWithoutFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	by := &countingCompiler{}
	c := &Cache{Dir: filepath.Join(file, "below")}
	for range 2 {
		if _, err := c.Compile(by, source); err != nil {
			t.Fatal(err)
		}
	}
	if by.calls != 2 {
		t.Errorf("%d compilations, want 2", by.calls)
	}
}
