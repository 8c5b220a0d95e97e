// Package doctable compares tables of the documentation with the code, in tests of the packages
// whose parts a table lists.
package doctable

import (
	"flag"
	"os"
	"strings"
	"testing"
)

// Update is the flag with which tests write the tables, and the hashes of results.
var Update = flag.Bool("update", false,
	"rewrite testdata/result-hashes.json and the generated tables of the documentation")

// Check compares the table of a name on a page with want.
func Check(t *testing.T, page, name, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	start, end := "<!-- "+name+" -->\n", "<!-- end -->"
	before, rest, ok := strings.Cut(string(text), start)
	got, after, ended := strings.Cut(rest, end)
	switch {
	case !ok || !ended:
		t.Errorf("%s has no lines %q and %q", page, strings.TrimSpace(start), end)
	case got == want:
	case !*Update:
		t.Errorf("%s: the table %q differs from the code: run go test -run TestGeneratedTables -update in this folder",
			page, name)
	default:
		if err := os.WriteFile(page, []byte(before+start+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
