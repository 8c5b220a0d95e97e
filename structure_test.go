package fspda_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"strings"
	"testing"
)

// Limits of the code's structure. Generated files and tests are not counted.
const (
	maxFunctionLines = 60
	maxStructFields  = 20
	maxPackageLines  = 6500
	maxTrainLines    = 4670 // The package train itself: a run and its agents.
	maxMethodsLines  = 7500 // The package train/algo has a file for each method.
)

// TestStructure holds functions, structs and packages to the limits above.
func TestStructure(t *testing.T) {
	lines := map[string]int{}
	for _, name := range readableFiles(t) {
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if ast.IsGenerated(f) {
			continue
		}
		lines[path.Dir(name)] += files.File(f.Pos()).LineCount()
		checkDeclarations(t, files, f)
	}
	for folder, n := range lines {
		limit := maxPackageLines
		switch folder {
		case "train":
			limit = maxTrainLines
		case "train/algo":
			limit = maxMethodsLines
		}
		if n > limit {
			t.Errorf("package %s has %d lines, want at most %d: split it by topic", folder, n, limit)
		}
	}
}

// The build tag fspda_noasm, with which make test runs, excludes all assembly that noasm excludes.
func TestAssemblyTags(t *testing.T) {
	for _, name := range readableFiles(t) {
		for line := range strings.Lines(readText(t, name)) {
			if strings.HasPrefix(line, "//go:build ") &&
				strings.Count(line, "noasm") != 2*strings.Count(line, "fspda_noasm") {
				t.Errorf("%s: %swant fspda_noasm beside noasm", name, line)
			}
		}
	}
}

// checkDeclarations refuses functions and structs of a file that are too long.
func checkDeclarations(t *testing.T, files *token.FileSet, f *ast.File) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if l := files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1; l > maxFunctionLines {
				t.Errorf("%s: function %s has %d lines, want at most %d", files.Position(n.Pos()), n.Name.Name,
					l, maxFunctionLines)
			}
		case *ast.TypeSpec:
			s, ok := n.Type.(*ast.StructType)
			if !ok {
				break
			}
			fields := 0
			for _, field := range s.Fields.List {
				fields += max(1, len(field.Names))
			}
			if fields > maxStructFields {
				t.Errorf("%s: struct %s has %d fields, want at most %d: group them by topic", files.Position(n.Pos()),
					n.Name.Name, fields, maxStructFields)
			}
		}
		return true
	})
}
