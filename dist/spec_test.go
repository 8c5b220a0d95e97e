package dist

import (
	"strings"
	"testing"
)

// The error for an unknown spec lists all spellings, in every table; and each row of a table
// without an argument can be parsed.
func TestTables(t *testing.T) {
	g := mustGraph(t, "complete", 4)
	for _, c := range []struct {
		kind  string
		table []spelling
		parse func(spec string) error
	}{
		{"graph", graphSpellings, func(s string) error {
			n := 4
			if s == "er10-published" {
				n = 10
			}
			_, err := ParseGraph(s, n, 1)
			return err
		}},
		{"edge process", processSpellings, func(s string) error { _, err := ParseProcess(s, g, 1); return err }},
		{"mask", maskSpellings, func(s string) error { _, err := ParseMask(s, 0.5, []int{8}, 1); return err }},
		{"mixing matrix", mixingSpellings, func(s string) error { _, err := ParseMixing(s, g); return err }},
	} {
		err := c.parse("nonsense")
		if err == nil || !strings.HasPrefix(err.Error(), "dist: no "+c.kind+" is spelled \"nonsense\"") {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		for _, s := range c.table {
			if !strings.Contains(err.Error(), s.form) || !strings.Contains(err.Error(), s.meaning) {
				t.Errorf("%s: %s is not in the error %v", c.kind, s.form, err)
			}
			name, _, takesArg := strings.Cut(s.form, "(")
			if err := c.parse(name); (err == nil) == takesArg {
				t.Errorf("%s without argument: %v", name, err)
			}
		}
	}
}

// A spec that reads a file names it; others have none.
func TestFilePath(t *testing.T) {
	for spec, want := range map[string]string{
		"file(a (1).txt)": "a (1).txt", " trace( t ) ": "t", "arcs(x)": "x", "ring": "", "er(0.5)": "", "file(": "",
	} {
		if got := FilePath(spec); got != want {
			t.Errorf("%q: %q, want %q", spec, got, want)
		}
	}
}
