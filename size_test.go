package fspda_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

// sizes are the most lines of Go by folder, without tests and generated files. A change that raises
// one says why in its commit. The tools and examples, which are modules of their own, are not
// counted, and internal/testing counts as tests. `make size` prints the current lines.
var sizes = map[string]int{
	".":        4,
	"bench":    10640,
	"cli":      14120,
	"cmd":      40,
	"cpu":      12500,
	"cuda":     20330,
	"data":     17980,
	"device":   6570,
	"dist":     12000,
	"docs":     140,
	"internal": 1445,
	"model":    6830,
	"selftest": 950,
	"train":    34600,
	"web":      5490,
}

// TestSize holds the lines of each folder to its budget.
func TestSize(t *testing.T) {
	lines := map[string]int{}
	for _, name := range readableFiles(t) {
		folder, _, below := strings.Cut(name, "/")
		if !below {
			folder = "."
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || folder == "tools" ||
			folder == "examples" || strings.HasPrefix(name, "internal/testing/") {
			continue
		}
		text := readText(t, name)
		f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if !ast.IsGenerated(f) {
			lines[folder] += strings.Count(text, "\n")
		}
	}
	total, budget := 0, 0
	for _, folder := range slices.Sorted(maps.Keys(lines)) {
		n, most := lines[folder], sizes[folder]
		total, budget = total+n, budget+most
		t.Logf("%6d of %6d lines in %s", n, most, folder)
		if n > most {
			t.Errorf("%s has %d lines of Go, want at most %d: make it smaller, or raise the budget and say why",
				folder, n, most)
		}
	}
	t.Logf("%6d of %6d lines", total, budget)
}
