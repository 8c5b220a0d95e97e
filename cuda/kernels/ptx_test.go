package kernels_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
	"fspda/internal/testing/hostrun"
)

// interpreterVariable is the environment variable with the path of an interpreter of PTX, a C++
// source. It includes stub.inc, which has a line K("unit", kernel, "kinds of parameters") for each
// kernel, and defines the functions of package hostrun for them. They read UNIT.ptx in the folder
// that FSPDA_PTX_DIR names. With FSPDA_PTX_RACES they print a line that begins with RACE for two
// accesses of different warps or blocks that nothing orders.
const interpreterVariable = "FSPDA_PTX_INTERPRETER"

// interpreter runs tests on PTX of one architecture.
type interpreter struct {
	library, folder string
	compiler        *nvrtc.Library
	arch            string // "80"
}

// newInterpreter compiles the interpreter, and all units to PTX.
func newInterpreter(t *testing.T, library string, arch string) *interpreter {
	t.Helper()
	n := &interpreter{library: library, folder: t.TempDir(), arch: arch}
	for _, l := range libraries(t) {
		if n.compiler == nil && l.Supports("sm_"+arch) {
			n.compiler = l
		}
	}
	if n.compiler == nil {
		t.Skipf("no NVRTC of this machine compiles for compute capability %s", arch)
	}
	made, err := kernels.Compile(n.compiler, nil, "compute_"+arch)
	if err != nil {
		t.Fatal(err)
	}
	for unit, b := range made {
		n.write(t, n.folder, unit, b.Cubin)
	}
	return n
}

func (n *interpreter) write(t *testing.T, folder, unit string, ptx []byte) {
	t.Helper()
	path := filepath.Join(folder, unit+".ptx")
	if err := os.RemoveAll(path); err != nil { // it may be a link
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.TrimRight(ptx, "\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// buildInterpreter compiles the interpreter.
func buildInterpreter(t *testing.T) (library string) {
	t.Helper()
	source := os.Getenv(interpreterVariable)
	if source == "" {
		t.Skipf("no interpreter of PTX: %s names its source", interpreterVariable)
	}
	compiler, err := hostrun.Compiler()
	if err != nil {
		t.Skip(err)
	}
	var stub strings.Builder
	for _, k := range kernels.All() {
		fmt.Fprintf(&stub, "K(%q,%s,%q)\n", k.Unit, k.Name, k.Kinds())
	}
	dir := t.TempDir()
	library = filepath.Join(dir, "interpreter.so")
	if err := os.WriteFile(filepath.Join(dir, "stub.inc"), []byte(stub.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(compiler, "-O2", "-march=native", "-std=c++17", "-shared", "-fPIC", "-I", dir, "-o", library,
		source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return library
}

// onTensorCores are the tests of kernels on tensor cores, which PTX of sm_70 has not.
const onTensorCores = "^TestAttentionOnTensorCores$|^TestGemmTF32$|^TestGroup$/./^tensor_cores$"

// run runs tests of this package on the PTX of a folder. It returns their output, and whether they
// passed without a race. The race in stratified is on purpose: its last block writes after a fence
// and a count, which the interpreter does not know as an order.
func (n *interpreter) run(folder, tests string) (output string, pass bool) {
	without := "^TestOrders$|^TestCompile|^TestPTX$|^TestPlantedErrors$|^TestMegakernelTimes$" // it knows no time
	if n.arch == "70" {
		without += "|" + onTensorCores
	}
	cmd := exec.Command(os.Args[0], "-test.run", tests, "-test.skip", without)
	cmd.Env = append(os.Environ(), hostrun.LibraryVariable+"="+n.library, "FSPDA_PTX_DIR="+folder, "FSPDA_PTX_RACES=1",
		"FSPDA_LONG=")
	out, err := cmd.CombinedOutput()
	races := bytes.Count(out, []byte("RACE ")) - bytes.Count(out, []byte("RACE stratified:"))
	return string(out), err == nil && races == 0
}

// planted is an error in a kernel: a text of its source that is replaced, and a test that must fail
// then.
type planted struct {
	file, unit, test string
	old, new         string
	nth              int // which of the places with the text
}

// plantedErrors has, for each unit on tensor cores or with numbers of 16 bits, a wrong index and,
// if it has barriers, one that is missing.
var plantedErrors = map[string]planted{
	"attention: the other half of a fragment": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "column / 8 + lane / 8 % 2", new: "column / 8 + lane / 16"},
	"attention: no barrier": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "__syncthreads(); // the tile", new: "// the tile"},
	"attention: no wait for a copy": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "wait_copies<0>()", new: "wait_copies<1>()"},
	"gradient of queries: D of another row": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "- mean[p][r / 2]", new: "- mean[p][r % 2]"},
	"gradient of queries: no barrier": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "__syncthreads(); // the tile", new: "// the tile", nth: 1},
	"gradient of keys: lse of another row": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "of_columns.v[r % 2 * 2]", new: "of_columns.v[r / 2 * 2]"},
	"gradient of keys: no barrier": {file: "attention_mma.cu", test: "TestAttentionOnTensorCores",
		old: "__syncthreads(); // the tile", new: "// the tile", nth: 2},
	"layer norm: no barrier in a sum": {file: "layernorm_half.cu", test: "^TestLayerNormRows$",
		old: "= v[k];\n  __syncthreads();", new: "= v[k];"},
	"layer norm: one buffer for all rows": {file: "layernorm_half.cu", test: "^TestLayerNormRows$",
		old: "block_sum(sum, sums, row & 1)", new: "block_sum(sum, sums, 0)"},
	"layer norm: sums of another column": {file: "layernorm_half.cu", test: "^TestLayerNormRows$",
		old: "sum + lines[k][lane]", new: "sum + lines[k][lane ^ 1]"},
	"orthogonal: no barrier in a sum": {file: "orthogonal.cu", test: "^TestKernelChecks$/^orthogonal$",
		old: "__syncthreads();\n  double s", new: "double s"},
	"orthogonal: no barrier in a tile": {file: "orthogonal.cu", test: "^TestKernelChecks$/^orthogonal$",
		old: "__syncthreads();\n  T *to", new: "T *to"},
	"orthogonal: rows of another matrix": {file: "orthogonal.cu", test: "^TestKernelChecks$/^orthogonal$",
		old: "(i64)(column + j) * rows", new: "(i64)(column + j) * columns"},
	"loss: no barrier": {file: "loss_half.cu", test: "^TestWideLoss$",
		old: "__syncthreads(); // d may be x", new: "// d may be x"},
	"loss: the sums of one warp": {file: "loss_half.cu", test: "^TestWideLoss$",
		old: "over_warp(of_warp[lane])", new: "over_warp(of_warp[lane ^ lane % 2])"},
	"loss: padding is not written": {file: "loss_half.cu", test: "^TestWideLoss$",
		old: "first + k * step < padded", new: "first + k * step + 8 < padded"},
	"GELU: a bias without end": {file: "gelu.cu", test: "^TestCurves$",
		old: "if (++column == n) column = 0", new: "if (++column > n) column = 0"},
	"SwiGLU: the other half of a row": {file: "gelu.cu", test: "^TestCurves$",
		old: "dgu[at + f] = Number<T>", new: "dgu[at + f - 1] = Number<T>"},
	"products: another row of a fragment": {file: "gemm_half.cuh", unit: "gemm_half.cu", test: "^TestGemmHalf$",
		old: "tb[t + 4][8 * j + g]", new: "tb[t + 4][8 * j + (g ^ 1)]"},
	"products: no barrier": {file: "gemm_half.cuh", unit: "gemm_half.cu", test: "^TestGemmHalf$",
		old: "block.sync();\n    la.fetch", new: "la.fetch"},
	"products of bytes: another row": {file: "gemm_bytes.cuh", unit: "gemm_bytes.cu",
		test: "^TestKernelChecks$/^products$", old: "256 * (i % 2) + 128 * r", new: "256 * (i % 2) + 128 * (1 - r)"},
	"products of bytes: no barrier": {file: "gemm_bytes.cuh", unit: "gemm_bytes.cu",
		test: "^TestKernelChecks$/^products$", old: "block.sync();", new: ";", nth: 1},
}

// All tests of kernels pass on an interpreter of PTX, without a race.
func TestPTX(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("interprets all other tests: set FSPDA_LONG=1")
	}
	library := buildInterpreter(t)
	for _, arch := range []string{"70", "80", "90"} {
		t.Run("sm_"+arch, func(t *testing.T) {
			n := newInterpreter(t, library, arch)
			if out, pass := n.run(n.folder, "."); !pass {
				t.Errorf("the tests do not pass:\n%s", out)
			}
		})
	}
}

// An interpreter of PTX finds errors that are planted in kernels of tensor cores and of numbers of
// 16 bits. The tests pass without them.
func TestPlantedErrors(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("compiles and interprets kernels with errors: set FSPDA_LONG=1")
	}
	n := newInterpreter(t, buildInterpreter(t), "80")
	var tests []string
	for _, p := range plantedErrors {
		tests = append(tests, p.test)
	}
	slices.Sort(tests)
	if out, pass := n.run(n.folder, strings.Join(slices.Compact(tests), "|")); !pass {
		t.Fatalf("the tests do not pass without a planted error:\n%s", out)
	}
	for _, what := range slices.Sorted(maps.Keys(plantedErrors)) {
		t.Run(what, func(t *testing.T) {
			if out, pass := n.run(n.plant(t, plantedErrors[what]), plantedErrors[what].test); pass {
				t.Errorf("the error is not found:\n%s", out)
			} else {
				t.Log(firstFinding(out))
			}
		})
	}
}

// plant returns a folder of PTX with a planted error.
func (n *interpreter) plant(t *testing.T, p planted) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, s := range kernels.Sources("compute_" + n.arch) {
		unit := p.unit
		if unit == "" {
			unit = p.file
		}
		if s.Name != unit {
			name := s.Name + ".ptx"
			if err := os.Symlink(filepath.Join(n.folder, name), filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		parts := strings.Split(kernels.Files()[p.file], p.old)
		if len(parts) < p.nth+2 {
			t.Fatalf("%s has %d places with %q, want more than %d: plant another error", p.file, len(parts)-1, p.old,
				p.nth)
		}
		text := strings.Join(parts[:p.nth+1], p.old) + p.new + strings.Join(parts[p.nth+1:], p.old)
		if p.file == unit {
			s.Text = text
		} else {
			s.Headers = maps.Clone(s.Headers)
			s.Headers[p.file] = text
		}
		b, err := n.compiler.Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		n.write(t, folder, s.Name, b.Cubin)
	}
	return folder
}

// firstFinding returns the first line of an output that reports an error.
func firstFinding(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "RACE ") || strings.Contains(line, ".go:") || strings.Contains(line, "SIG") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(out)
}
