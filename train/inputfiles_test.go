package train

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A run goes on only with the content that a file of its configuration had at its start.
func TestOtherFileContent(t *testing.T) {
	file, dir := filepath.Join(t.TempDir(), "graph"), runFolder(t)
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := small()
	c.Agents, c.Graph, c.Iterations, c.EvalPoints = 3, "file("+file+")", 8, 2
	write("0 1\n1 2\n")
	path, _ := resolve(t, c)
	if _, err := inFolder(t, t.Context(), c, dir, Options{}); err != nil {
		t.Fatal(err)
	}
	c.Iterations, c.EvalPoints = 16, 4
	write("0 1\n0 2\n")
	star, _ := resolve(t, c)
	if a, b := path.Identity(nil), star.Identity(nil); a[5] == b[5] || a[5][0] != "content of the file of graph" {
		t.Errorf("identities %q and %q", a[5], b[5])
	}
	if _, err := inFolder(t, t.Context(), c, dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "other content of the file that graph names") {
		t.Errorf("another graph: %v", err)
	}
	write("0 1\n1 2\n")
	if _, err := inFolder(t, t.Context(), c, dir, Options{}); err != nil {
		t.Error(err)
	}
}
