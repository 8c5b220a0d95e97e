package headertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"fspda/cuda/dynlib"
)

// Headers returns the folders of the named headers of a CUDA version, or skips the test.
func Headers(t testing.TB, major int, names ...string) []string {
	t.Helper()
	nvrtc, err := dynlib.System().Open(dynlib.NVRTC(major))
	if err != nil {
		t.Skipf("%v (set %s to a folder with it and NVIDIA's headers)", err, dynlib.PathVariable)
	}
	lib := filepath.Dir(nvrtc.Path)
	folders := []string{filepath.Join(lib, "../include")}
	// wheels have one folder per library, below nvidia/
	wheels, err := filepath.Glob(filepath.Join(lib, "../../*/include"))
	if err != nil {
		t.Fatal(err)
	}
	folders = append(folders, wheels...)
	var found []string
	for _, name := range names {
		at := -1
		for i, p := range folders {
			if _, err := os.Stat(filepath.Join(p, name)); err == nil {
				at = i
				break
			}
		}
		if at < 0 {
			t.Skipf("%s is in none of %v: install NVIDIA's headers of CUDA %d", name, folders, major)
		}
		found = append(found, folders[at])
	}
	return found
}

// Check compiles assertions that every function in tables, found by its tag, matches its
// declaration in the header: same number of arguments, same size and kind of each, pointers to
// values of the same size.
func Check(t testing.TB, folders []string, header string, tables ...any) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "#include <%s>\n%s", header, prelude)
	n := 0
	for _, table := range tables {
		n += assertTable(&text, reflect.TypeOf(table))
	}
	if n == 0 {
		t.Fatal("the tables have no function with a tag")
	}
	compile(t, folders, header, text.String())
}

// compile checks the syntax of C++ that includes a header.
func compile(t testing.TB, folders []string, header, text string) {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("g++ is not installed")
	}
	source := filepath.Join(t.TempDir(), "check.cpp")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-std=c++17", "-fsyntax-only", "-Wno-deprecated-declarations"}
	for _, f := range folders {
		args = append(args, "-I", f)
	}
	out, err := exec.Command(compiler, append(args, source)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", header, err, out)
	}
}

// prelude is C++ that inspects function types.
const prelude = `
#include <tuple>
#include <type_traits>
template <class F> struct fn;
template <class R, class... A> struct fn<R (*)(A...)> {
  using result = R;
  static constexpr int count = sizeof...(A);
  template <int i> using arg = std::tuple_element_t<i, std::tuple<A...>>;
};
template <class T> using to =
  std::conditional_t<std::is_void_v<std::remove_pointer_t<T>>, char, std::remove_pointer_t<T>>;
template <class T> constexpr bool pointer = std::is_pointer_v<T>;
template <class T> constexpr bool word = (std::is_integral_v<T> || std::is_enum_v<T>) && sizeof(T) == 4;
template <class T> constexpr bool byte = std::is_integral_v<T> && sizeof(T) == 1;
template <class T> constexpr bool large = (std::is_integral_v<T> || std::is_pointer_v<T>) && sizeof(T) == 8;
template <class T, int n> constexpr bool points() {
  if constexpr (std::is_pointer_v<T>) return std::is_void_v<std::remove_pointer_t<T>> || sizeof(to<T>) == n;
  else return false;
}
`

func assertTable(s *strings.Builder, table reflect.Type) (n int) {
	for _, f := range reflect.VisibleFields(table) {
		symbol, _, _ := strings.Cut(f.Tag.Get("sym"), ",")
		if symbol == "" || f.Type.Kind() != reflect.Func {
			continue
		}
		n++
		it := fmt.Sprintf("fn<decltype(&%s)>", symbol)
		assert(s, fmt.Sprintf("%s::count == %d", it, f.Type.NumIn()), "%s does not take %d arguments",
			symbol, f.Type.NumIn())
		for k := range f.Type.NumIn() {
			assert(s, kind(fmt.Sprintf("%s::arg<%d>", it, k), f.Type.In(k)), "argument %d of %s is not %s", k, symbol,
				f.Type.In(k))
		}
		if f.Type.NumOut() == 1 {
			assert(s, kind(it+"::result", f.Type.Out(0)), "%s does not return %s", symbol, f.Type.Out(0))
		}
	}
	return n
}

func assert(s *strings.Builder, condition, text string, args ...any) {
	fmt.Fprintf(s, "static_assert(%s, %q);\n", condition, fmt.Sprintf(text, args...))
}

// kind returns a C++ condition that holds if the C++ type c matches the Go type t.
func kind(c string, t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		if t.Elem().Kind() == reflect.Uint8 { // char* or void*
			return fmt.Sprintf("pointer<%s>", c)
		}
		return fmt.Sprintf("(points<%s, %d>())", c, t.Elem().Size())
	case reflect.UnsafePointer, reflect.String:
		return fmt.Sprintf("pointer<%s>", c)
	case reflect.Float32:
		return fmt.Sprintf("(std::is_same_v<%s, float>)", c)
	case reflect.Float64:
		return fmt.Sprintf("(std::is_same_v<%s, double>)", c)
	case reflect.Uint8:
		return fmt.Sprintf("byte<%s>", c)
	}
	if t.Size() == 4 {
		return fmt.Sprintf("word<%s>", c)
	}
	return fmt.Sprintf("large<%s>", c)
}
