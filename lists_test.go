package fspda_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"fspda/data/images/packed"
	"fspda/device"
	"fspda/device/signature"
	"fspda/dist/discover"
	"fspda/internal/rng"
	"fspda/internal/testing/doctable"
	"fspda/train/runfolder"
)

const internalsPage = "docs/internals.md"

// TestGeneratedTables compares tables of the documentation with the code. With -update it writes
// them.
func TestGeneratedTables(t *testing.T) {
	for _, table := range []struct{ page, name, want string }{
		{internalsPage, "kernels", kernelTable()},
		{internalsPage, "device methods", methodTable()},
		{internalsPage, "operations", operationTable(t)},
		{internalsPage, "imports", importTable()},
		{"docs/long-tests.md", "long tests", longTestTable(t)},
	} {
		doctable.Check(t, table.page, table.name, table.want)
	}
}

func kernelTable() string {
	var b strings.Builder
	b.WriteString("\n| kernel | dimensions | inputs | outputs | in place |\n|---|---|---|---|---|\n")
	for _, k := range device.Kernels() {
		s := signature.Of(k)
		inPlace := ""
		if s.InPlace {
			inPlace = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", k, s.Dims, strings.Join(s.In, ", "),
			strings.Join(s.Out, ", "), inPlace)
	}
	return b.String() + "\n"
}

func methodTable() string {
	var b strings.Builder
	b.WriteString("\n| method | arguments | results |\n|---|---|---|\n")
	kind := reflect.TypeFor[device.Device]()
	for i := range kind.NumMethod() {
		m := kind.Method(i)
		var in, out []string
		for k := range m.Type.NumIn() {
			in = append(in, typeName(m.Type.In(k), m.Type.IsVariadic() && k == m.Type.NumIn()-1))
		}
		for k := range m.Type.NumOut() {
			out = append(out, typeName(m.Type.Out(k), false))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.Name, strings.Join(in, ", "), strings.Join(out, ", "))
	}
	return b.String() + "\n"
}

// operationTable lists the functions that make operations on vectors, and the first sentences of
// their comments.
func operationTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n| operation | arguments | computes |\n|---|---|---|\n")
	file, err := parser.ParseFile(token.NewFileSet(), "device/op.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Type.Results == nil || typeText(f.Type.Results.List[0]) != "Op" {
			continue
		}
		var in []string
		for _, p := range f.Type.Params.List {
			for _, name := range p.Names {
				in = append(in, name.Name+" "+typeText(p))
			}
		}
		text := strings.TrimPrefix(new(doc.Package).Synopsis(f.Doc.Text()), f.Name.Name+" ")
		text = regexp.MustCompile(`\[([A-Z][\w.]*)\]`).ReplaceAllString(strings.TrimRight(text, ".:"), "$1")
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name.Name, strings.Join(in, ", "), text)
	}
	return b.String() + "\n"
}

// typeText writes the type of a parameter or a result.
func typeText(f *ast.Field) string {
	var b strings.Builder
	_ = printer.Fprint(&b, token.NewFileSet(), f.Type) // a Builder has no errors
	return b.String()
}

// longTestTable lists the functions of tests that ask for FSPDA_LONG, by package, and what is
// skipped: all of a test, or a part.
func longTestTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n| package | test | without `FSPDA_LONG=1` |\n|---|---|---|\n")
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			what := ""
			ast.Inspect(d, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Value == `"FSPDA_LONG"` && what == "" {
					what = "a part of it"
				}
				if s, ok := n.(*ast.IfStmt); ok && mentions(s.Cond, `"FSPDA_LONG"`) && mentions(s.Body, "Skip") {
					what = "skipped"
				}
				return true
			})
			if what != "" {
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", filepath.ToSlash(filepath.Dir(name)), declared(d), what)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

// mentions reports whether a literal or the beginning of a name occurs in the code below a node.
func mentions(below ast.Node, text string) (found bool) {
	ast.Inspect(below, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			found = found || n.Value == text
		case *ast.Ident:
			found = found || strings.HasPrefix(n.Name, text)
		}
		return true
	})
	return found
}

// declared returns the first name that a declaration declares.
func declared(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		if v, ok := d.Specs[0].(*ast.ValueSpec); ok {
			return v.Names[0].Name
		}
	}
	return ""
}

func typeName(t reflect.Type, variadic bool) string {
	name := t.String()
	if variadic {
		name = "..." + t.Elem().String()
	}
	return strings.ReplaceAll(name, "device.", "")
}

// importTable draws the table of imports: packages by level, the highest first. A package imports
// packages of lower levels only.
func importTable() string {
	level := map[string]int{}
	var height func(folder string) int
	height = func(folder string) int {
		if n, known := level[folder]; known {
			return n
		}
		n := 0
		for _, to := range allowed[folder] {
			n = max(n, height(to)+1)
		}
		level[folder] = n
		return n
	}
	for folder := range allowed {
		height(folder)
	}
	var b strings.Builder
	b.WriteString("\n| level | package | may import |\n|---|---|---|\n")
	folders := slices.SortedFunc(maps.Keys(allowed), func(x, y string) int {
		if level[x] != level[y] {
			return level[y] - level[x]
		}
		return strings.Compare(x, y)
	})
	for _, folder := range folders {
		fmt.Fprintf(&b, "| %d | `%s` | %s |\n", level[folder], folder,
			strings.Join(slices.Sorted(slices.Values(allowed[folder])), ", "))
	}
	return b.String() + "\n"
}

// TestListedRandomStreams compares the table of random streams with the calls of rng.New in the
// packages that a result depends on.
func TestListedRandomStreams(t *testing.T) {
	streams := map[string]bool{}
	for _, file := range readableFiles(t) {
		root, _, _ := strings.Cut(file, "/")
		if path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") || !slices.Contains([]string{"data", "dist",
			"model", "train"}, root) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || f.Sel.Name != "New" {
				return true
			}
			if p, ok := f.X.(*ast.Ident); !ok || p.Name != "rng" {
				return true
			}
			name, ok := call.Args[1].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: a random stream has no constant name", file)
				return true
			}
			text, err := strconv.Unquote(name.Value)
			if err != nil {
				t.Error(err)
			}
			streams[text] = true
			return true
		})
	}
	compareLists(t, "Random streams", slices.Sorted(maps.Keys(streams)))
}

// TestListedVariables compares the table of environment variables with the names in the code.
func TestListedVariables(t *testing.T) {
	variable := regexp.MustCompile(`"(FSPDA|CUDA)_[A-Z_]+"`)
	// what passes between a test and its processes, and results of the driver
	other := regexp.MustCompile("^(FSPDA_TEST_|CUDA_ERROR_|CUDA_SUCCESS$)")
	names := map[string]bool{}
	for _, file := range readableFiles(t) {
		if path.Ext(file) != ".go" || file == "lists_test.go" {
			continue
		}
		for _, name := range variable.FindAllString(readText(t, file), -1) {
			if name = strings.Trim(name, `"`); !other.MatchString(name) {
				names[name] = true
			}
		}
	}
	compareLists(t, "Environment variables", slices.Sorted(maps.Keys(names)))
}

// TestListedVersions compares the table of versions with the constants.
func TestListedVersions(t *testing.T) {
	for name, version := range map[string]int{"rng.Version": rng.Version, "discover.Version": discover.Version,
		"packed.Version": packed.Version, "runfolder.CheckpointVersion": runfolder.CheckpointVersion} {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| [^|]+ \| %d \| [^|]+ \| .%s. \|$`, version,
			regexp.QuoteMeta(name)))
		if !row.MatchString(readText(t, internalsPage)) {
			t.Errorf("%s does not say that %s is %d", internalsPage, name, version)
		}
	}
}

// compareLists compares the first column of the table under a heading with names, which are sorted.
func compareLists(t *testing.T, heading string, names []string) {
	t.Helper()
	_, section, ok := strings.Cut(readText(t, internalsPage), "## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %s", internalsPage, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		listed = append(listed, row[1])
	}
	for _, name := range names {
		if !slices.Contains(listed, name) {
			t.Errorf("%s, %s: %s is missing", internalsPage, heading, name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(names, name) {
			t.Errorf("%s, %s: %s is not in the code", internalsPage, heading, name)
		}
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page of public bug reports names at least thirty, and tests that exist.
func TestPublicReports(t *testing.T) {
	page := readText(t, "docs/public-reports.md")
	if n := len(regexp.MustCompile(`[\w.-]+/[\w.-]+ \d+\b`).FindAllString(page, -1)); n < 30 {
		t.Errorf("%d reports", n)
	}
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range readableFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(readText(t, file), -1) {
				there[m[1]] = true
			}
		}
	}
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1) {
		if !there[name[1]] {
			t.Errorf("no test %s", name[1])
		}
	}
}
