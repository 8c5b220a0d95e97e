package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
)

// The fields of tile.Args lie where the micro-kernels expect them.
func TestArgs(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join("..", "..", "..", "cpu", "tile", "args.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	// the file uses types of other files: only the struct is looked at
	config := types.Config{Error: func(error) {}}
	pkg, _ := config.Check("tile", files, []*ast.File{file}, nil)
	s, ok := pkg.Scope().Lookup("Args").Type().Underlying().(*types.Struct)
	if !ok {
		t.Fatal("Args is not a struct")
	}
	sizes := types.SizesFor("gc", "amd64")
	var names []string
	var offsets []int64
	var flatten func(s *types.Struct, base int64)
	flatten = func(s *types.Struct, base int64) {
		var fields []*types.Var
		for f := range s.Fields() {
			fields = append(fields, f)
		}
		for i, off := range sizes.Offsetsof(fields) {
			if inner, ok := fields[i].Type().Underlying().(*types.Struct); ok {
				flatten(inner, base+off)
				continue
			}
			names, offsets = append(names, fields[i].Name()), append(offsets, base+off)
		}
	}
	flatten(s, 0)
	if len(names) != len(args) {
		t.Fatalf("%d fields, want %d", len(names), len(args))
	}
	for i, name := range names {
		if name != args[i] || offsets[i] != int64(offset(args[i])) {
			t.Errorf("field %d is %s at %d, want %s at %d", i, name, offsets[i], args[i], offset(args[i]))
		}
	}
}

func TestOffsetOfNothing(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	offset("none")
}
