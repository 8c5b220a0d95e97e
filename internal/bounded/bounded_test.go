package bounded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/internal/bounded"
)

func ExampleYAML() {
	fmt.Println(bounded.YAML([]byte("agents: 10 # [[[[\nhidden: [100, 50]\n")))
	fmt.Println(bounded.YAML([]byte("a: &a [x]\nb: [*a, *a]\n")))
	// Output:
	// <nil>
	// line 1 has an anchor or an alias, "&": write the value out
}

func TestYAMLRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"long":     strings.Repeat("# long\n", 10_000),
		"brackets": "a: " + strings.Repeat("[", 50_000),
		"braces":   "a: " + strings.Repeat("{a: ", 100),
		"dashes":   strings.Repeat("- ", 30_000) + "x",
		"indented": strings.Repeat(" ", 100) + "a: 1",
		"alias":    "a: *b",
		"second":   "a: 1\n---\nb: 2\n",
		"octal":    "a: [1, -010]\n",
	} {
		if bounded.YAML([]byte(text)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, text := range map[string]string{"empty": "", "brackets in a comment": "# " + strings.Repeat("[", 100),
		"brackets in quotes":  "a: '" + strings.Repeat("[", 100) + "'",
		"octal that is meant": "a: [0o10, 0, 0.5, 1_000, '010']",
		"rule":                "a: 1\n# " + strings.Repeat("-", 100),
		"header":              "# a\n---\na: 1\n", "dashes in a text": "a: |\n  b\n  ---\n  c\nd: '---'\n"} {
		if err := bounded.YAML([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := bounded.File(path, 5); string(b) != "12345" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := bounded.File(path, 4); err == nil {
		t.Error("5 bytes were read, the limit was 4")
	}
	for _, other := range []string{filepath.Dir(path), os.DevNull} {
		if _, err := bounded.File(other, 5); err == nil || !strings.Contains(err.Error(), "regular") {
			t.Errorf("%s: %v", other, err)
		}
	}
}

// A file with a byte order mark is read as the one without.
func TestYAMLFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marked.yaml")
	if err := os.WriteFile(path, []byte("\ufeffagents: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := bounded.YAMLFile(path); err != nil || string(text) != "agents: 3\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := bounded.YAMLFile(path + ".gone"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
