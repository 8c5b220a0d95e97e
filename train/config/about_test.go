package config

import (
	"slices"
	"strings"
	"testing"
)

// Each algorithm of this module has a line in the table of methods, without empty cells.
func TestMethodTable(t *testing.T) {
	for _, m := range builtin {
		if i := slices.Index(m.aboutCells(), ""); i >= 0 {
			t.Errorf("%s has no %q in the table of methods", m.Name, aboutHeads[i])
		}
		if !strings.Contains(MethodTable(), "| `"+m.Name+"` |") || !strings.Contains(MethodHelp(), m.Name+"\n") {
			t.Errorf("%s is not in the table of methods", m.Name)
		}
		at := slices.IndexFunc(new(Config).Fields(), func(f Field) bool { return f.Name == "algo" })
		if !strings.Contains(new(Config).Fields()[at].Help, m.Name) {
			t.Errorf("%s is not in the help of the key algo", m.Name)
		}
	}
}
