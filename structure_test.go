package fspda_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// Limits of the code's structure. Generated files and tests are not counted.
const (
	maxFunctionLines = 60
	maxStructFields  = 20
	maxPackageLines  = 6500
	maxTrainLines    = 5780 // The package train itself: a run and its agents.
	maxMethodsLines  = 7500 // The package train/algo has a file for each method.

	// Code that asks a value for a further interface has a contract that no signature shows. Each
	// such place is a type that its caller should know instead, or a feature that few values have.
	maxAssertions = 24
)

// TestStructure holds functions, structs and packages to the limits above.
func TestStructure(t *testing.T) {
	lines := map[string]int{}
	interfaces, asserted := map[string]bool{}, map[string][]token.Position{}
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
		if folder, _, _ := strings.Cut(name, "/"); folder != "tools" && !strings.HasPrefix(name, "internal/testing/") {
			collectAssertions(files, f, path.Dir(name), interfaces, asserted)
		}
	}
	checkAssertions(t, interfaces, asserted)
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

// collectAssertions adds the interfaces that a file of a folder declares, and the positions of its
// type assertions and cases of type switches, by folder and type.
func collectAssertions(files *token.FileSet, f *ast.File, folder string, interfaces map[string]bool,
	asserted map[string][]token.Position) {
	add := func(e ast.Expr) {
		name := ""
		switch e := e.(type) {
		case *ast.InterfaceType:
			name = "interface"
		case *ast.Ident:
			name = folder + "." + e.Name
		case *ast.SelectorExpr:
			for _, i := range f.Imports {
				in := strings.Trim(i.Path.Value, `"`)
				if x, ok := e.X.(*ast.Ident); ok && (i.Name == nil && path.Base(in) == x.Name || i.Name != nil &&
					i.Name.Name == x.Name) {
					name = strings.TrimPrefix(in, "fspda/") + "." + e.Sel.Name
				}
			}
		}
		asserted[name] = append(asserted[name], files.Position(e.Pos()))
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if _, is := n.Type.(*ast.InterfaceType); is {
				interfaces[folder+"."+n.Name.Name] = true
			}
		case *ast.TypeAssertExpr:
			if n.Type != nil { // nil in the head of a type switch
				add(n.Type)
			}
		case *ast.TypeSwitchStmt:
			for _, c := range n.Body.List {
				for _, e := range c.(*ast.CaseClause).List {
					add(e)
				}
			}
		}
		return true
	})
}

// checkAssertions limits the assertions of interfaces of this module.
func checkAssertions(t *testing.T, interfaces map[string]bool, asserted map[string][]token.Position) {
	t.Helper()
	interfaces["interface"] = true
	var at []string
	for name, positions := range asserted {
		if interfaces[name] {
			for _, p := range positions {
				at = append(at, p.String()+" asks for "+name)
			}
		}
	}
	if len(at) > maxAssertions {
		slices.Sort(at)
		t.Errorf("%d type assertions to interfaces, want at most %d: give the value a type, or a field, that says it:"+
			"\n%s", len(at), maxAssertions, strings.Join(at, "\n"))
	}
	if len(at) < maxAssertions/2 {
		t.Errorf("found %d type assertions to interfaces, fewer than there are: is the search broken?", len(at))
	}
}
