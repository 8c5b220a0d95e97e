package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
)

// The fields of the struct lie where the micro-kernels look for them.
func TestArgs(t *testing.T) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, filepath.Join("..", "..", "tile_amd64.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Error: func(error) {}} // the file names types of others: only its own struct is looked at
	pkg, _ := config.Check("cpu", files, []*ast.File{file}, nil)
	s, ok := pkg.Scope().Lookup("tileArgs").Type().Underlying().(*types.Struct)
	if !ok {
		t.Fatal("tileArgs is no struct")
	}
	var fields []*types.Var
	for f := range s.Fields() {
		fields = append(fields, f)
	}
	offsets := types.SizesFor("gc", "amd64").Offsetsof(fields)
	if len(fields) != len(args) {
		t.Fatalf("%d fields, want %d", len(fields), len(args))
	}
	for i, f := range fields {
		if f.Name() != args[i] || offsets[i] != int64(offset(args[i])) {
			t.Errorf("field %d is %s at %d, want %s at %d", i, f.Name(), offsets[i], args[i], offset(args[i]))
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
