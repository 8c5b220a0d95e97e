package headertest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Values compiles assertions that names of the header have the given values.
func Values(t testing.TB, folders []string, header string, values map[string]int) {
	t.Helper()
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("g++ is not installed")
	}
	var text strings.Builder
	fmt.Fprintf(&text, "#include <%s>\n", header)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		assert(&text, fmt.Sprintf("(long long)%s == %d", name, values[name]), "%s is not %d", name, values[name])
	}
	source := filepath.Join(t.TempDir(), "values.cpp")
	if err := os.WriteFile(source, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-std=c++17", "-fsyntax-only"}
	for _, f := range folders {
		args = append(args, "-I", f)
	}
	if out, err := exec.Command(compiler, append(args, source)...).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", header, err, out)
	}
}
