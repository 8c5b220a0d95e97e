package hostrun

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/gofrs/flock"
	"golang.org/x/sys/cpu"

	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
)

//go:embed host.h
var header string

// ErrNoCompiler reports that no C++ compiler is installed.
var ErrNoCompiler = errors.New("hostrun: no C++ compiler: install g++, or set the environment variable CXX")

// Library is the kernels as a shared library of the host.
type Library struct {
	launch, cooperative map[string]uintptr
	order               uintptr

	mu sync.Mutex // the library's fibres run one launch at a time
	// Arguments of the current launch. They are stored here because a stack could move.
	geometry [6]uint32
	args     []uint64
	slots    []uintptr
}

// OrderVariable is the environment variable with the order in which threads run between barriers,
// and blocks run: "ascending", "descending", or the seed of a random order, which is the default.
const OrderVariable = "FSPDA_HOSTRUN_ORDER"

// orderOf returns the library's number of an order.
func orderOf(name string) (uintptr, error) {
	switch name {
	case "":
		return 2, nil
	case "ascending":
		return 0, nil
	case "descending":
		return 1, nil
	}
	n, err := strconv.ParseUint(name, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("hostrun: %s is %q, want ascending, descending or a number", OrderVariable, name)
	}
	return uintptr(n) + 2, nil
}

// Order sets the order of later launches, by its name in OrderVariable.
func (l *Library) Order(name string) error {
	seed, err := orderOf(name)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		dynlib.Call(l.order, seed)
	}
	return err
}

// CheckedVariable is the environment variable that builds the kernels with the compiler's
// sanitizers: misaligned accesses, array indices out of range, undefined shifts and conversions. A
// finding ends the program.
const CheckedVariable = "FSPDA_HOSTRUN_CHECKED"

var checks = []string{
	"-fsanitize=alignment,bounds,shift,float-cast-overflow,integer-divide-by-zero,signed-integer-overflow",
	"-fno-sanitize-recover=all", "-g"}

// compilerFlags returns the compiler's flags.
func compilerFlags() []string {
	all := flags
	if cpu.X86.HasFMA { // else each fmaf is a call of the C library
		all = append(slices.Clone(all), "-mfma")
	}
	if os.Getenv(CheckedVariable) != "" {
		all = slices.Concat(checks, all)
	}
	return all
}

// Open builds the library, or takes it from the user's cache, once per program. If there is no
// compiler, or the system cannot open libraries, the error is ErrNoCompiler or a *dynlib.Error.
var Open = sync.OnceValues(open)

func open() (*Library, error) {
	path, err := Build()
	if err != nil {
		return nil, err
	}
	return openLibrary(path, kernels.All())
}

// openUnits opens a library of the given kernels, whose units are among the files.
func openUnits(files map[string]string, all []*kernels.Kernel) (*Library, error) {
	path, err := buildUnits(files, all)
	if err != nil {
		return nil, err
	}
	return openLibrary(path, all)
}

func openLibrary(path string, all []*kernels.Kernel) (*Library, error) {
	h, err := dynlib.System().Open(&dynlib.Library{Name: "the kernels for the host", PreferredPaths: []string{path}})
	if err != nil {
		return nil, err
	}
	l := &Library{launch: map[string]uintptr{}, cooperative: map[string]uintptr{}}
	if l.order, err = h.Symbol("host_order"); err != nil {
		return nil, err
	}
	if err := l.Order(os.Getenv(OrderVariable)); err != nil {
		return nil, err
	}
	for _, k := range all {
		kinds, err := h.Symbol("kinds_" + k.Name)
		if err != nil {
			return nil, err
		}
		if got := dynlib.String(dynlib.Call(kinds)); got != k.Kinds() {
			return nil, fmt.Errorf("hostrun: kernel %s of %s takes parameters %q, the table has %q: fix one of them",
				k.Name, k.Unit, got, k.Kinds())
		}
		if l.launch[k.Name], err = h.Symbol("launch_" + k.Name); err != nil {
			return nil, err
		}
		if l.cooperative[k.Name], err = h.Symbol("cooperative_" + k.Name); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// LibraryVariable is the environment variable with the path of a library that is used in place of
// the one that Build makes. It has the same functions, and may be an interpreter of PTX.
const LibraryVariable = "FSPDA_HOSTRUN_LIBRARY"

// Build builds the library of all kernels, or takes it from the user's cache, and returns its path.
func Build() (path string, err error) {
	if path := os.Getenv(LibraryVariable); path != "" {
		return path, nil
	}
	return buildUnits(kernels.Files(), kernels.All())
}

func buildUnits(files map[string]string, all []*kernels.Kernel) (path string, err error) {
	compiler, err := Compiler()
	if err != nil {
		return "", err
	}
	return build(compiler, files, all)
}

// Compiler returns the path of the C++ compiler, or ErrNoCompiler.
func Compiler() (string, error) {
	for _, name := range []string{os.Getenv("CXX"), "g++", "c++", "clang++"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNoCompiler
}

// flags keep IEEE arithmetic, without fusing that the source does not ask for. Kernels access the
// same memory as several types.
var flags = []string{"-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing",
	"-fno-exceptions", "-fno-semantic-interposition", "-fvisibility-inlines-hidden", "-Wall", "-Wno-unknown-pragmas",
	"-Wno-unused-function", "-Wno-unused-variable", "-x", "c++"}

// build returns the path of the library.
func build(compiler string, files map[string]string, all []*kernels.Kernel) (string, error) {
	files = maps.Clone(files)
	files["host.h"] = header
	files["all.cpp"] = allUnits(all)
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "fspda", "hostrun")
	path := filepath.Join(dir, contentHash(compiler, files)+".so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("hostrun: %w", err)
	}
	lock := flock.New(strings.TrimSuffix(path, ".so") + ".lock") // other processes wait for the first
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("hostrun: %w", err)
	}
	defer lock.Unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	work, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return "", fmt.Errorf("hostrun: %w", err)
	}
	defer os.RemoveAll(work)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o600); err != nil {
			return "", fmt.Errorf("hostrun: %w", err)
		}
	}
	made := filepath.Join(work, "kernels.so")
	cmd := exec.Command(compiler, append(slices.Clone(compilerFlags()), "all.cpp", "-o", made)...)
	cmd.Dir = work
	if log, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("hostrun: %s: %w:\n%s", cmd, err, log)
	}
	return path, os.Rename(made, path)
}

// allUnits returns a source file that includes the units of all kernels and a launcher for each.
func allUnits(all []*kernels.Kernel) string {
	var s strings.Builder
	s.WriteString("#include \"host.h\"\n")
	var unit string
	for _, k := range all {
		if k.Unit != unit {
			unit = k.Unit
			fmt.Fprintf(&s, "#include %q\n", unit)
		}
		fmt.Fprintf(&s, "HOST_LAUNCH(%s)\n", k.Name)
	}
	return s.String()
}

func contentHash(compiler string, files map[string]string) string {
	h := sha256.New()
	fmt.Fprintln(h, compiler, runtime.GOARCH, compilerFlags())
	if info, err := os.Stat(compiler); err == nil {
		fmt.Fprintln(h, info.Size(), info.ModTime())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintln(h, name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Memory keeps slices alive and in place while kernels access them.
type Memory struct{ kept []any }

// At returns the address of a slice, which m keeps alive.
func At[T any](m *Memory, s []T) kernels.Address {
	m.kept = append(m.kept, s)
	return kernels.Address(uintptr(unsafe.Pointer(unsafe.SliceData(s))))
}

// Launch runs calls in order. Addresses point to slices in m, or to other memory of the program.
// The error reports a barrier that not all threads reach. As on a GPU, an invalid address ends the
// program.
func (l *Library) Launch(m *Memory, calls ...kernels.Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer runtime.KeepAlive(m)
	for _, c := range calls {
		if err := l.launchOne(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *Library) launchOne(c kernels.Call) error {
	if c.Empty() {
		return fmt.Errorf("hostrun: launching %s: an empty grid %v, which a GPU refuses", c.Kernel.Name, c.Grid)
	}
	l.geometry = [6]uint32{c.Grid[0], c.Grid[1], c.Grid[2], c.Block[0], c.Block[1], c.Block[2]}
	l.args = append(l.args[:0], c.Args...)
	l.slots = l.slots[:0]
	for i := range l.args {
		l.slots = append(l.slots, uintptr(unsafe.Pointer(&l.args[i])))
	}
	launch := l.launch[c.Kernel.Name]
	if c.Cooperative {
		launch = l.cooperative[c.Kernel.Name]
	}
	failure := dynlib.Call(launch, uintptr(unsafe.Pointer(&l.geometry)), uintptr(c.Shared),
		uintptr(unsafe.Pointer(unsafe.SliceData(l.slots))))
	runtime.KeepAlive(l)
	if failure != 0 {
		return fmt.Errorf("hostrun: launching %s with a grid %v of blocks %v: %s", c.Kernel.Name, c.Grid, c.Block,
			dynlib.String(failure))
	}
	return nil
}
