package fakecuda

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fspda/internal/testing/headertest"
	"fspda/internal/testing/hostrun"
)

// built returns the folder of the libraries.
func built(t *testing.T, v Variant) string {
	t.Helper()
	dir, err := Build(v)
	if errors.Is(err, hostrun.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Build creates every library, and a second call builds nothing.
func TestBuild(t *testing.T) {
	dir := built(t, Variant{})
	for _, l := range (Variant{}).libraries() {
		if _, err := os.Stat(filepath.Join(dir, l.file)); err != nil {
			t.Error(err)
		}
	}
	if again := built(t, Variant{}); again != dir {
		t.Errorf("%s, then %s", dir, again)
	}
}

// Every function has the declaration of NVIDIA's headers, and every constant has their value.
func TestAgainstHeaders(t *testing.T) {
	compiler, err := hostrun.Compiler()
	if err != nil {
		t.Skip(err)
	}
	src := filepath.Join(t.TempDir(), "src")
	if err := WriteSources(src); err != nil {
		t.Fatal(err)
	}
	for source, headers := range map[string][]string{
		"cuda.cpp":     {"cuda.h"},
		"nvrtc.cpp":    {"nvrtc.h"},
		"cublas.cpp":   {"cuda_runtime_api.h", "crt/host_defines.h", "cublas_v2.h", "cublasLt.h"},
		"cublaslt.cpp": {"cuda_runtime_api.h", "crt/host_defines.h", "cublas_v2.h", "cublasLt.h"},
		"backend.cpp":  {"cuda_runtime_api.h", "crt/host_defines.h", "cudnn.h"},
		"cudnn.cpp":    {"cuda_runtime_api.h", "crt/host_defines.h", "cudnn.h"},
	} {
		t.Run(source, func(t *testing.T) {
			args := []string{"-std=c++17", "-fsyntax-only", "-Wno-deprecated-declarations", "-DNVIDIA_HEADERS",
				"-DCUDA_MAJOR=13"}
			for _, folder := range headertest.Headers(t, 13, headers...) {
				args = append(args, "-I", folder)
			}
			cmd := exec.Command(compiler, append(args, source)...)
			cmd.Dir = src
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
