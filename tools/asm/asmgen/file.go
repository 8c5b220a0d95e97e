package asmgen

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// File describes the output of a generator: PACKAGE_asm_amd64.s, its declarations in
// PACKAGE_asm_amd64.go, and functions that choose by instruction set in PACKAGE_dispatch_amd64.go.
type File struct {
	Generator string // import path, for the first line
	Package   string
	InTables  []string // prefixes of functions that are called through tables, not by Dispatch
	Emit      func(c *build.Context)
}

// Asm returns the name of the assembly file.
func (f File) Asm() string { return f.Package + "_asm_amd64.s" }

// Stubs returns the name of the file of declarations.
func (f File) Stubs() string { return f.Package + "_asm_amd64.go" }

// Print returns the contents of all files by name. The error says what avo rejected.
func (f File) Print() (map[string][]byte, error) {
	c := build.NewContext()
	c.ConstraintExpr("!noasm,!fspda_noasm")
	f.Emit(c)
	file, err := c.Result()
	if err != nil {
		return nil, fmt.Errorf("%s: build: %w", f.Generator, err)
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, fmt.Errorf("%s: compile: %w", f.Generator, err)
	}
	config := printer.Config{Name: f.Generator, Pkg: f.Package}
	files := map[string][]byte{}
	for name, p := range map[string]printer.Printer{f.Asm(): printer.NewGoAsm(config),
		f.Stubs(): printer.NewStubs(config)} {
		if files[name], err = p.Print(file); err != nil {
			return nil, fmt.Errorf("%s: print %s: %w", f.Generator, name, err)
		}
	}
	files[f.Stubs()] = wrapped(files[f.Stubs()])
	all, err := f.kernels(file.Functions())
	if err != nil || len(all) == 0 {
		return files, err
	}
	for name, print := range map[string]func([]*kernel) ([]byte, error){f.Dispatch(): f.dispatch,
		f.NoDispatch(): f.noDispatch} {
		if files[name], err = print(all); err != nil {
			return nil, fmt.Errorf("%s: print %s: %w", f.Generator, name, err)
		}
	}
	return files, nil
}

// wrapped breaks lines of declarations over 120 columns between parameters. The further lines are
// indented.
func wrapped(text []byte) []byte {
	const width, tab = 120, 4
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "func ") {
			continue
		}
		var parts []string
		for most := width; len(line) > most; most = width - tab {
			at := strings.LastIndex(line[:most], ", ")
			if at < 0 {
				break
			}
			parts, line = append(parts, line[:at+1]), line[at+2:]
		}
		lines[i] = strings.Join(append(parts, line), "\n\t")
	}
	return []byte(strings.Join(lines, "\n"))
}

// Write writes the files to a folder.
func (f File) Write(dir string) error {
	files, err := f.Print()
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return fmt.Errorf("%s: write: %w", f.Generator, err)
		}
	}
	return nil
}

// Check returns an error that names a file in a folder which differs from the generator's output.
func (f File) Check(dir string) error {
	files, err := f.Print()
	if err != nil {
		return err
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("%s: check: %w", f.Generator, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("%s: %s differs from the output of the generator: run go generate ./cpu/... again",
				f.Generator, name)
		}
	}
	return nil
}

// Main is the main function of a generator: it writes to the folder that its one argument names,
// and exits with status 1 if that fails.
func Main(f File) {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "%s: %d arguments, expected one: the folder of package %s\n",
			f.Generator, len(os.Args)-1, f.Package)
		os.Exit(1)
	}
	if err := f.Write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
