package driver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"fspda/internal/testing/headertest"
)

// fakeLibcuda is the source of a libcuda in host memory, with the functions that TestThroughCU
// calls. Its kernel writes the product of its grid size and its second argument to its first.
const fakeLibcuda = `
#include <stdlib.h>
#include <string.h>
int cuInit(unsigned f) { return 0; }
int cuDriverGetVersion(int *v) { *v = 12090; return 0; }
int cuDeviceGetCount(int *n) { *n = 1; return 0; }
int cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)(0x70L + d); return 0; }
int cuCtxSetCurrent(void *c) { return c == (void *)0x71L ? 0 : 201; }
int cuModuleGetFunction(void **f, void *m, const char *name) {
  *f = (void *)0x90L;
  return m == (void *)0x80L && !strcmp(name, "k") ? 0 : 500;
}
int cuMemAlloc_v2(unsigned long long *p, size_t n) {
  if (n > 1 << 20) return 2;
  *p = (unsigned long long)malloc(n);
  return 0;
}
int cuMemFree_v2(unsigned long long p) { free((void *)p); return 0; }
int cuMemGetInfo_v2(size_t *f, size_t *t) { *f = 5; *t = 6; return 0; }
int cuMemcpyHtoDAsync_v2(unsigned long long d, const void *s, size_t n, void *q) {
  memcpy((void *)d, s, n);
  return q != (void *)0xa0L;
}
int cuMemcpyDtoHAsync_v2(void *d, unsigned long long s, size_t n, void *q) {
  memcpy(d, (void *)s, n);
  return q != (void *)0xa0L;
}
int cuMemcpyDtoDAsync_v2(unsigned long long d, unsigned long long s, size_t n, void *q) {
  memcpy((void *)d, (void *)s, n);
  return q != (void *)0xa0L;
}
int cuMemsetD8Async(unsigned long long d, unsigned char v, size_t n, void *q) {
  memset((void *)d, v, n);
  return q != (void *)0xa0L;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
    unsigned shared, void *q, void **args, void **more) {
  if (f != (void *)0x90L || gy != 1 || gz != 1 || bx != 4 || by != 5 || bz != 6 || shared != 7 ||
      q != (void *)0xa0L || more)
    return 1;
  **(long **)args[0] = (long)gx * *(int *)args[1];
  return 0;
}
`

// linkFakeLibcuda builds fakeLibcuda, adds an empty version of every other function of the header,
// and returns the folder.
func linkFakeLibcuda(t *testing.T, include string) string {
	t.Helper()
	dir := t.TempDir()
	header, err := exec.Command("gcc", "-E", "-P", filepath.Join(include, "cuda.h")).Output()
	if err != nil {
		t.Fatal(err)
	}
	text := fakeLibcuda
	var names []string
	for _, m := range regexp.MustCompile(`\bCUresult\s+(cu\w+)\s*\(`).FindAllStringSubmatch(string(header), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	for _, n := range append(slices.Compact(names), "cuGraphAddKernelNode") {
		if !strings.Contains(text, "int "+n+"(") {
			text += fmt.Sprintf("int %s() { return 0; }\n", n)
		}
	}
	source := filepath.Join(dir, "cuda.c")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o",
		filepath.Join(dir, "libcuda.so"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink("libcuda.so", filepath.Join(dir, "libcuda.so.1")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// With the tag cu, the package compiles against the headers of CUDA 12, and its calls reach the
// driver. Compiling gorgonia.org/cu takes half a minute.
func TestTagCU(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("compiling gorgonia.org/cu takes half a minute: FSPDA_LONG=1 does")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	include := headertest.Headers(t, 12, "cuda.h")[0]
	lib := linkFakeLibcuda(t, include)
	shim, err := filepath.Abs("cuheader")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-count", "1", "-vet=off", "-tags", "cu", "-run", "^TestThroughCU$", "-v", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-w -I"+shim+" -I"+include, "CGO_LDFLAGS=-L"+lib,
		"LD_LIBRARY_PATH="+lib, "FSPDA_CUDA_PATH="+lib)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestThroughCU") {
		t.Errorf("%v\n%s", err, out)
	}
}
