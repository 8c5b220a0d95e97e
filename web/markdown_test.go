package web

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// report.md has the numbers of the page, well-formed tables, and links to existing pictures.
func TestMarkdownReport(t *testing.T) {
	for name, make := range runs {
		dir := make(t)
		if err := WriteReport(dir); err != nil {
			t.Fatal(err)
		}
		if name == "good" {
			if err := WritePlots(dir); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "report.md"))
		if err != nil {
			t.Fatal(err)
		}
		checkTables(t, name, string(text))
		if name != "good" {
			continue
		}
		for _, want := range []string{"# mnist-sa\n", "96.89 %", "| 95.00 % |", "bits, shared seed",
			"fspda train --algo fspda-sa", "```yaml\n# resolved configuration", "| Seed | 1 |"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("no %q in\n%s", want, text)
			}
		}
		for part := range strings.SplitSeq(string(text), "](") {
			if file, _, ok := strings.Cut(part, ")\n"); ok && strings.HasPrefix(file, "plots/") {
				if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
					t.Error(err)
				}
			}
		}
		keep(t, dir, "markdown")
	}
}

// checkTables checks that all rows of a table have the same number of cells.
func checkTables(t *testing.T, name, text string) {
	t.Helper()
	cells := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if cells > 0 && n != cells {
			t.Errorf("%s: a row with %d separators in a table with %d: %s", name, n, cells, line)
		}
		cells = n
	}
}

// Markdown and HTML in texts are escaped.
func TestMarkdownIsText(t *testing.T) {
	dir := folder(t, "metrics.jsonl", "", "summary.json", `{"command":"a|b`+"```"+`","version":"<b>|x"}`)
	if err := WriteReport(dir); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "report.md"))
	if !strings.Contains(string(text), "````sh\na|b```\n````") || !strings.Contains(string(text), `&lt;b>\|x`) {
		t.Errorf("%s", text)
	}
}
