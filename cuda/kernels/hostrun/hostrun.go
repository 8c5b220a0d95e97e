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

	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
)

//go:embed host.h
var header string

// ErrNoCompiler says that there is no C++ compiler.
var ErrNoCompiler = errors.New("hostrun: no C++ compiler: install g++, or name one by the environment variable CXX")

// Library is the kernels as a shared library of the host.
type Library struct {
	launch, cooperative map[string]uintptr
	order               uintptr

	mu sync.Mutex // the fibres are the library's
	// Of the launch under way. They are here, and not on a stack, which could move.
	geometry [6]uint32
	args     []uint64
	slots    []uintptr
}

// OrderVariable is the environment variable with the order in which threads run between barriers,
// and blocks: "ascending", "descending", or the number of one that is drawn, which is the default.
const OrderVariable = "FSPDA_HOSTRUN_ORDER"

// orderOf is an order as the library numbers them.
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

// Order chooses the order of the launches to come, by its name in OrderVariable.
func (l *Library) Order(name string) error {
	seed, err := orderOf(name)
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		dynlib.Call(l.order, seed)
	}
	return err
}

// CheckedVariable is the environment variable that builds the kernels with checks of the compiler:
// addresses that are not aligned for what is read there, indices outside of arrays, shifts and
// conversions that are not defined. What they find ends the program.
const CheckedVariable = "FSPDA_HOSTRUN_CHECKED"

var checks = []string{"-fsanitize=alignment,bounds,shift,float-cast-overflow,integer-divide-by-zero,signed-integer-overflow", "-fno-sanitize-recover=all", "-g"}

// flagsNow are the compiler's.
func flagsNow() []string {
	if os.Getenv(CheckedVariable) == "" {
		return flags
	}
	return slices.Concat(checks, flags)
}

// Open builds the library, or takes it from the user's cache, once for the program. Where there is
// no compiler, or the system cannot open libraries, the error is ErrNoCompiler or a *dynlib.Error.
var Open = sync.OnceValues(open)

func open() (*Library, error) { return openUnits(kernels.Files(), kernels.All()) }

// openUnits opens a library of the kernels in all, whose units are among the files.
func openUnits(files map[string]string, all []*kernels.Kernel) (*Library, error) {
	path, err := buildUnits(files, all)
	if err != nil {
		return nil, err
	}
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
		if got := text(dynlib.Call(kinds)); got != k.Kinds() {
			return nil, fmt.Errorf("hostrun: kernel %s of %s takes parameters %q, the table has %q: correct one of them", k.Name, k.Unit, got, k.Kinds())
		}
		if l.launch[k.Name], err = h.Symbol("launch_" + k.Name); err != nil {
			return nil, err
		}
		if l.cooperative[k.Name], err = h.Symbol("together_" + k.Name); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Build builds the library of all kernels, or takes it from the user's cache, and returns its path.
func Build() (path string, err error) { return buildUnits(kernels.Files(), kernels.All()) }

func buildUnits(files map[string]string, all []*kernels.Kernel) (path string, err error) {
	compiler, err := Compiler()
	if err != nil {
		return "", err
	}
	return build(compiler, files, all)
}

// Compiler is the path of the C++ compiler. Where there is none the error is ErrNoCompiler.
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

// flags keep to IEEE's arithmetic: no fusing that the source does not say. Kernels read memory as
// numbers of several types.
var flags = []string{"-std=c++17", "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing",
	"-fno-exceptions", "-Wall",
	"-Wno-unknown-pragmas", "-Wno-unused-function", "-Wno-unused-variable", "-x", "c++"}

// build returns the path of the library.
func build(compiler string, files map[string]string, all []*kernels.Kernel) (string, error) {
	files = maps.Clone(files)
	files["host.h"] = header
	files["all.cpp"] = cooperative(all)
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
	cmd := exec.Command(compiler, append(slices.Clone(flagsNow()), "all.cpp", "-o", made)...)
	cmd.Dir = work
	if log, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("hostrun: %s: %w:\n%s", cmd, err, log)
	}
	return path, os.Rename(made, path) // another process may have been faster: the content is the same
}

// together is a source that has the units of all kernels and a launcher for each.
func cooperative(all []*kernels.Kernel) string {
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
	fmt.Fprintln(h, compiler, runtime.GOARCH, flagsNow())
	if info, err := os.Stat(compiler); err == nil {
		fmt.Fprintln(h, info.Size(), info.ModTime())
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintln(h, name, len(files[name]), files[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Memory keeps slices where they are while kernels work on them.
type Memory struct{ kept []any }

// At is the address of a slice, which m keeps alive and in its place.
func At[T any](m *Memory, s []T) kernels.Address {
	m.kept = append(m.kept, s)
	return kernels.Address(uintptr(unsafe.Pointer(unsafe.SliceData(s))))
}

// Launch runs calls one after the other. Their addresses are those of slices in m, or of other
// memory of the program. The error tells of a barrier that not all threads reach. As on a GPU, an
// address that is none ends the program.
func (l *Library) Launch(m *Memory, calls ...kernels.Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer runtime.KeepAlive(m)
	for _, c := range calls {
		if err := l.launch1(c); err != nil {
			return err
		}
	}
	return nil
}

func (l *Library) launch1(c kernels.Call) error {
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
			text(failure))
	}
	return nil
}

// text reads a string that ends with a zero byte.
func text(address uintptr) string {
	var b []byte
	for ; ; address++ {
		c := *(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address)))
		if c == 0 {
			return string(b)
		}
		b = append(b, c)
	}
}
