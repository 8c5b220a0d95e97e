package main

import (
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// Names of the generated files, in the folder of package cpu.
const (
	asmFile  = "vec_asm_amd64.s"
	stubFile = "vec_asm_amd64.go"
)

func main() {
	files, err := generate()
	if err == nil {
		err = write(files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vecgen:", err)
		os.Exit(1)
	}
}

// generate returns the generated files by name.
func generate() (map[string][]byte, error) {
	c := build.NewContext()
	c.ConstraintExpr("!noasm")
	data(c)
	for _, s := range sets {
		e := &emitter{Context: c, set: s}
		for _, write := range []func(*emitter){elementwise, combine, combineStream, sigmoids, expRows, timesRows, dot, rowTops, columnSums,
			gather, far, differences, scatter} {
			write(e)
		}
	}
	f, err := c.Result()
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	config := printer.Config{Name: "fspda/cpu/internal/vecgen", Pkg: "cpu"}
	files := map[string][]byte{}
	for name, p := range map[string]printer.Printer{asmFile: printer.NewGoAsm(config), stubFile: printer.NewStubs(config)} {
		if files[name], err = p.Print(f); err != nil {
			return nil, fmt.Errorf("print %s: %w", name, err)
		}
	}
	return files, nil
}

// write puts the files into the current folder.
func write(files map[string][]byte) error {
	for name, text := range files {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}
