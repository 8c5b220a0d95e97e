package headertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Values compiles assertions that names of the header have the given values.
func Values(t testing.TB, folders []string, header string, values map[string]int) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "#include <%s>\n", header)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		assert(&text, fmt.Sprintf("(long long)%s == %d", name, values[name]), "%s is not %d", name, values[name])
	}
	compile(t, folders, header, text.String())
}
