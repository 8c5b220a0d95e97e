package fakecuda

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"fspda/cuda/kernels"
	"fspda/internal/testing/hostrun"
)

//go:embed src
var sources embed.FS

// Variant selects a set of libraries.
type Variant struct {
	Major   int      // major version of CUDA; 0 means 13
	Without []string // functions to leave out
}

func (v Variant) major() int {
	if v.Major == 0 {
		return 13
	}
	return v.Major
}

// library is a library to build.
type library struct {
	file   string
	source string   // source files, separated by spaces
	uses   []string // files of the libraries that it links to
}

func (v Variant) libraries() []library {
	n := v.major()
	named := func(format string) string { return fmt.Sprintf(format, n) }
	return []library{
		{"libcuda.so.1", "cuda.cpp", nil},
		{named("libnvrtc.so.%d"), "nvrtc.cpp", nil},
		{named("libnvrtc-builtins.so.%d.0"), "empty.cpp", nil},
		{named("libcublasLt.so.%d"), "cublaslt.cpp", []string{"libcuda.so.1"}},
		{named("libcublas.so.%d"), "cublas.cpp", []string{"libcuda.so.1"}},
		{"libcudnn.so.9", "cudnn.cpp backend.cpp", []string{"libcuda.so.1"}},
		{"libcudnn_graph.so.9", "empty.cpp", nil},
	}
}

// compilerFlags are the compiler flags of all libraries.
var compilerFlags = []string{"-std=c++17", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off",
	"-Wall", "-Wextra", "-Wno-missing-field-initializers"}

// Build returns the folder of the libraries, which are built once per content of the sources. If
// there is no C++ compiler the error is hostrun.ErrNoCompiler.
func Build(v Variant) (dir string, err error) {
	compiler, err := hostrun.Compiler()
	if err != nil {
		return "", err
	}
	hostKernels, err := hostrun.Build()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	parent := filepath.Join(cache, "fspda", "fakecuda")
	hash, err := v.hash(compiler, hostKernels)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(parent, hash)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	lock := flock.New(dir + ".lock") // other processes wait for the first
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	defer lock.Unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	work, err := os.MkdirTemp(parent, "build-")
	if err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	defer os.RemoveAll(work)
	if err := v.buildAll(work, compiler, hostKernels); err != nil {
		return "", err
	}
	if err := os.Rename(work, dir); err != nil {
		return "", fmt.Errorf("fakecuda: %w", err)
	}
	return dir, nil
}

// hash returns a digest of everything that the libraries are built from.
func (v Variant) hash(compiler, hostKernels string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, compiler, runtime.GOARCH, compilerFlags, v.major(), v.Without, filepath.Base(hostKernels))
	if info, err := os.Stat(compiler); err == nil {
		fmt.Fprintln(h, info.Size(), info.ModTime())
	}
	entries, err := sources.ReadDir("src")
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		text, err := sources.ReadFile(path.Join("src", e.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", e.Name(), len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}

// buildAll builds everything in a folder: the libraries, the kernels for the host, and copies of
// the sources.
func (v Variant) buildAll(dir, compiler, hostKernels string) error {
	src := filepath.Join(dir, "src")
	if err := WriteSources(src); err != nil {
		return err
	}
	units := filepath.Join(dir, "units")
	if err := os.Mkdir(units, 0o755); err != nil {
		return fmt.Errorf("fakecuda: %w", err)
	}
	for name, text := range kernels.Files() {
		if err := os.WriteFile(filepath.Join(units, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("fakecuda: %w", err)
		}
	}
	library, err := os.ReadFile(hostKernels)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kernels.so"), library, 0o755)
	}
	if err != nil {
		return fmt.Errorf("fakecuda: %w", err)
	}
	for _, l := range v.libraries() {
		if err := v.compile(dir, compiler, l); err != nil {
			return err
		}
	}
	return nil
}

// WriteSources writes the sources of the libraries to a new folder.
func WriteSources(dir string) error {
	text, err := fs.Sub(sources, "src")
	if err == nil {
		err = os.CopyFS(dir, text)
	}
	if err != nil {
		return fmt.Errorf("fakecuda: %w", err)
	}
	return nil
}

// compile builds a library. Functions to leave out are renamed.
func (v Variant) compile(dir, compiler string, l library) error {
	args := append(slices.Clone(compilerFlags), fmt.Sprintf("-DCUDA_MAJOR=%d", v.major()), "-Wl,-soname,"+l.file,
		"-Wl,-rpath,$ORIGIN", "-Wl,-z,defs")
	for _, f := range v.Without {
		args = append(args, fmt.Sprintf("-D%s=missing_%s", f, f))
	}
	for f := range strings.FieldsSeq(l.source) {
		args = append(args, filepath.Join("src", f))
	}
	args = append(append(args, "-o", l.file), l.uses...)
	cmd := exec.Command(compiler, append(args, "-ldl")...)
	cmd.Dir = dir
	if log, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fakecuda: %s: %w:\n%s", cmd, err, log)
	}
	return nil
}
