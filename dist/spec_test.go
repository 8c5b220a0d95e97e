package dist

import (
	"fmt"
	"strings"
	"testing"

	"fspda/internal/testing/doctable"
)

// TestGeneratedTables compares tables of the documentation with the code. With -update it writes
// them.
func TestGeneratedTables(t *testing.T) {
	for key, forms := range map[string][]Form{"graph": formsIn(graphKinds), "compress": formsIn(Compressors())} {
		want := fmt.Sprintf("\n| `%s` | meaning |\n|---|---|\n", key)
		for _, f := range forms {
			want += fmt.Sprintf("| `%s` | %s |\n", f, f.Meaning)
		}
		doctable.Check(t, "../docs/training-reference.md", key, want+"\n")
	}
}

// The error for an unknown spec lists all spellings, in every table; and each row of a table
// without an argument can be parsed.
func TestTables(t *testing.T) {
	g := mustGraph(t, "complete", 4)
	for _, c := range []struct {
		kind  string
		table []Form
		parse func(spec string) error
	}{
		{"graph", formsIn(graphKinds), func(s string) error {
			n := 4
			if s == "er10-published" {
				n = 10
			}
			_, err := ParseGraph(s, n, 1)
			return err
		}},
		{"edge process", formsIn(processKinds), func(s string) error { _, err := ParseProcess(s, g, 1); return err }},
		{"mask", maskForms, func(s string) error { _, err := ParseMask(s, 0.5, []int{8}, 1); return err }},
		{"mixing matrix", formsIn(mixingKinds), func(s string) error { _, err := ParseMixing(s, g); return err }},
	} {
		err := c.parse("nonsense")
		if err == nil || !strings.HasPrefix(err.Error(), "dist: no "+c.kind+" is spelled \"nonsense\"") {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		for _, s := range c.table {
			if !strings.Contains(err.Error(), s.String()) || !strings.Contains(err.Error(), s.Meaning) {
				t.Errorf("%s: %s is not in the error %v", c.kind, s, err)
			}
			if err := c.parse(s.Name); (err == nil) != (len(s.Args) == 0) {
				t.Errorf("%s without argument: %v", s.Name, err)
			}
		}
	}
}

// formsIn lists the forms of a table.
func formsIn[T formed](table []T) (forms []Form) {
	for _, row := range table {
		forms = append(forms, row.form())
	}
	return forms
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
