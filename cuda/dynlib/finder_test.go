package dynlib

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fakeLoader is an opener of empty files in a folder of the test. It records what is opened.
type fakeLoader struct {
	opened []string
	bad    string // files with this part in their path do not open
	known  []string
}

func (s *fakeLoader) open(path string, global bool) (uintptr, error) {
	if !strings.Contains(path, "/") && !slices.Contains(s.known, path) {
		return 0, errors.New("the loader does not know it")
	}
	if s.bad != "" && strings.Contains(path, s.bad) {
		return 0, errors.New("invalid ELF header")
	}
	s.opened = append(s.opened, fmt.Sprintf("%s global=%t", path, global))
	return uintptr(len(s.opened)), nil
}

func (s *fakeLoader) symbol(uintptr, string) (uintptr, error) {
	return 0, errors.New("no symbols here")
}

func (s *fakeLoader) close(handle uintptr) error {
	s.opened[handle-1] += " closed"
	return nil
}

// testFinder returns a Finder on a file system with these files, and its root.
func testFinder(t *testing.T, s *fakeLoader, env map[string]string, files ...string) (*Finder, string) {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range env {
		env[k] = strings.ReplaceAll(v, "ROOT", root)
	}
	return &Finder{Env: func(k string) string { return env[k] }, Program: filepath.Join(root, "bin/fspda"), Root: root,
		opener: s}, root
}

// The first folder in the documented search order wins.
func TestOrder(t *testing.T) {
	const lib = "libnvrtc.so.13"
	order := []string{
		"named/" + lib,
		"bin/" + lib,
		"venv/lib/python3.11/site-packages/nvidia/cu13/lib/" + lib,
		"conda/lib/" + lib,
		"other/lib/python3.12/site-packages/nvidia/cu13/lib/" + lib,
		"home/.local/lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/" + lib,
		"usr/local/lib/python3.10/dist-packages/nvidia/cu13/lib/" + lib,
		"toolkit/lib64/" + lib,
		"usr/local/cuda/lib64/" + lib,
		"usr/local/cuda-13.1/lib64/" + lib,
		"usr/local/cuda-12.4/lib64/" + lib,
	}
	env := map[string]string{PathVariable: "ROOT/none:ROOT/named", "VIRTUAL_ENV": "ROOT/venv",
		"CONDA_PREFIX": "ROOT/conda",
		"PATH":         "ROOT/empty:ROOT/other/bin", "HOME": "ROOT/home", "CUDA_HOME": "ROOT/toolkit"}
	for i, want := range order {
		s := &fakeLoader{}
		f, root := testFinder(t, s, maps.Clone(env), append(order[i:], "other/bin/python3")...)
		h, err := f.Open(NVRTC(13))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if got, _ := filepath.Rel(root, h.Path); got != want {
			t.Errorf("found %s (%s), want %s", got, h.Origin, want)
		}
		if h.Origin == "" {
			t.Errorf("%s: Origin is empty", h.Path)
		}
	}
}

// The driver is found by the loader, or else where containers mount it.
func TestDriverOfContainer(t *testing.T) {
	for want, s := range map[string]*fakeLoader{"libcuda.so.1": {known: []string{"libcuda.so.1"}},
		"usr/local/nvidia/lib64/libcuda.so.1": {}} {
		f, root := testFinder(t, s, nil, "usr/local/nvidia/lib64/libcuda.so.1")
		h, err := f.Open(Driver())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(h.Path, root+"/"); got != want {
			t.Errorf("found %s, want %s", got, want)
		}
	}
}

// PathVariable may name a folder of libraries, a site-packages or a Python environment.
func TestPathVariable(t *testing.T) {
	for _, folder := range []string{"env", "env/lib/python3.11/site-packages",
		"env/lib/python3.11/site-packages/nvidia/cu13/lib"} {
		f, _ := testFinder(t, &fakeLoader{}, map[string]string{PathVariable: "ROOT/" + folder},
			"env/lib/python3.11/site-packages/nvidia/cu13/lib/libcublas.so.13")
		if _, err := f.Open(CUBLAS(13)); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
}

// The parts of a library are opened from the same folder, in order.
func TestBeside(t *testing.T) {
	s := &fakeLoader{}
	f, root := testFinder(t, s, map[string]string{"CUDA_HOME": "ROOT/cuda"},
		"cuda/lib64/libnvrtc.so.12", "cuda/lib64/libnvrtc-builtins.so.12.4", "cuda/lib64/libcudnn.so.9",
		"cuda/lib64/libcudnn_adv.so.9", "cuda/lib64/libcudnn_graph.so.9", "cuda/lib64/libcudnn_ops.so.9")
	if _, err := f.Open(NVRTC(12)); err != nil {
		t.Fatal(err)
	}
	cudnn := CUDNN(12, 90)
	cudnn.Accept = nil
	if _, err := f.Open(cudnn); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range s.opened {
		got = append(got, strings.TrimPrefix(o, root+"/cuda/lib64/"))
	}
	want := []string{"libnvrtc-builtins.so.12.4 global=true", "libnvrtc.so.12 global=false",
		"libcudnn.so.9 global=true",
		"libcudnn_graph.so.9 global=true", "libcudnn_ops.so.9 global=true", "libcudnn_adv.so.9 global=true"}
	slices.Sort(got[4:]) // the last pattern opens some files twice, which is harmless
	if len(got) != 8 || !slices.Equal(got[:4], want[:4]) {
		t.Errorf("opened %q, want %q", got, want)
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("opened %q without %s", got, w)
		}
	}
}

// If a file does not open or is rejected, the next one is tried; the error lists all.
func TestRefused(t *testing.T) {
	s := &fakeLoader{bad: "named"}
	l := &Library{Name: "a library", Files: []string{"libx.so.1"}, Hint: "pip install x"}
	l.Accept = func(h *Handle) error {
		if strings.Contains(h.Path, "toolkit") {
			return errors.New("too old")
		}
		return nil
	}
	f, root := testFinder(t, s, map[string]string{PathVariable: "ROOT/named", "CUDA_HOME": "ROOT/toolkit"},
		"named/libx.so.1", "toolkit/lib64/libx.so.1")
	_, err := f.Open(l)
	var missing *Error
	if !errors.As(err, &missing) || len(missing.Attempts) != 2 || !slices.Contains(missing.Searched,
		filepath.Join(root, "toolkit/lib64")) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"a library is not found", "invalid ELF header", "too old", "pip install x"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if !strings.HasSuffix(s.opened[0], "closed") {
		t.Errorf("the rejected file is still open: %q", s.opened)
	}
	s.known = []string{"libx.so.1"} // finally the loader finds one
	if h, err := f.Open(l); err != nil || h.Path != "libx.so.1" {
		t.Errorf("%+v, %v", h, err)
	}
}

func TestMajors(t *testing.T) {
	for _, c := range []struct {
		driver, cc int
		want       string
	}{
		{13020, 90, "[13 12]"}, {13000, 75, "[13 12]"}, {13000, 70, "[12]"}, {12040, 90, "[12]"}, {12000, 70,
			"[12]"}, {11080, 80, "[]"},
	} {
		if got := fmt.Sprint(Majors(c.driver, c.cc)); got != c.want {
			t.Errorf("driver %d, compute capability %d: CUDA %s, want %s", c.driver, c.cc, got, c.want)
		}
	}
}

// A part of cuDNN that convolutions do not need, and that does not open, is left out; one that they
// need is not.
func TestOptionalParts(t *testing.T) {
	parts := []string{"cuda/lib64/libcudnn.so.9", "cuda/lib64/libcudnn_graph.so.9", "cuda/lib64/libcudnn_ops.so.9",
		"cuda/lib64/libcudnn_cnn.so.9", "cuda/lib64/libcudnn_adv.so.9", "cuda/lib64/libcudnn_ext.so.9",
		"cuda/lib64/libcudnn_heuristic.so.9"}
	for _, c := range []struct {
		bad    string
		opened int
	}{{"adv", 6}, {"ext", 6}, {"graph", 0}, {"ops", 0}, {"cnn", 0}} {
		s := &fakeLoader{bad: "_" + c.bad}
		f, _ := testFinder(t, s, map[string]string{"CUDA_HOME": "ROOT/cuda"}, parts...)
		cudnn := CUDNN(12, 90)
		cudnn.Accept = nil
		h, err := f.Open(cudnn)
		if c.opened == 0 && err == nil {
			t.Errorf("%v is used without its part %s", h.Path, c.bad)
		}
		if got := distinct(s.opened); c.opened > 0 && (err != nil || got != c.opened) {
			t.Errorf("without %s: %v, %d parts are open, want %d: %q", c.bad, err, got, c.opened, s.opened)
		}
	}
}

func distinct(all []string) int { return len(slices.Compact(slices.Sorted(slices.Values(all)))) }
