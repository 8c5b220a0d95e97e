package fspda_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// textFiles are the kinds of files that people read.
var textFiles = []string{".cpp", ".cu", ".cuh", ".css", ".go", ".h", ".html", ".js", ".md", ".mjs", ".py", ".service",
	".sh", ".tmpl", ".txt", ".yaml", ".yml"}

// historic are folders that keep texts as they were written at their time.
var historic = []string{"bench/results", "runs"}

// A comment is a sentence that a stranger understands. TestComments holds four rates of comments
// without a clear subject to the largest ones of etcd's raft, pebble and gonum, about.
var commentLimits = []struct {
	name    string
	trailer bool // counted per trailing comment, else per line of comments
	pattern *regexp.Regexp
	most    float64 // share
}{
	{"trailing comments that begin with a preposition", true, regexp.MustCompile(
		`^// (of|as|in|by|for|from|to|at|on|with|without|behind|under|between|among|into|over|per)\b`), 0.03},
	{`"what"`, false, regexp.MustCompile(`(?i)\bwhat\b`), 0.005},
	{`"that of" and "those of"`, false, regexp.MustCompile(`(?i)\b(that|those) of\b`), 0.002},
	{`"so many"`, false, regexp.MustCompile(`(?i)\bso many\b`), 0.001},
}

func TestComments(t *testing.T) {
	trailing, lines := 0, 0
	found := make([][]string, len(commentLimits))
	for _, name := range readableFiles(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "tools/") {
			continue
		}
		text := readText(t, name)
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) {
			continue
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				at := files.Position(c.Pos())
				begin := at.Offset - at.Column + 1
				trailer := strings.TrimSpace(text[begin:at.Offset]) != ""
				lines += 1 + strings.Count(c.Text, "\n")
				if trailer {
					trailing++
				}
				for i, limit := range commentLimits {
					if limit.trailer && !trailer {
						continue
					}
					for range limit.pattern.FindAllString(c.Text, -1) {
						found[i] = append(found[i], at.String()+": "+c.Text)
					}
				}
			}
		}
	}
	for i, limit := range commentLimits {
		all := lines
		if limit.trailer {
			all = trailing
		}
		if share := float64(len(found[i])) / float64(all); share > limit.most {
			t.Errorf("%s: %d in %d, %.2f %%, want at most %.1f %%. A comment names its subject:\n%s", limit.name,
				len(found[i]), all, 100*share, 100*limit.most, strings.Join(found[i], "\n"))
		}
	}
}

// readableFiles lists the text files of the project, with slashes, from its root.
func readableFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && name != "."
			if hidden || d.Name() == "uplot" || slices.Contains(historic, name) {
				return filepath.SkipDir
			}
			return nil
		}
		if slices.Contains(textFiles, path.Ext(name)) || name == "Makefile" {
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
