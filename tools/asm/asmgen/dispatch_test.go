package asmgen

import (
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/build"
)

// some is a file with kernels for two instruction sets, for one, and for a table.
var some = File{Generator: "fspda/tools/asm/asmgen", Package: "some", InTables: []string{"tile"},
	Emit: func(c *build.Context) {
		for _, name := range []string{"narrowAVX2", "bothAVX2", "sumAVX512", "bothAVX512", "sumAVX2", "tile1AVX2"} {
			Begin(c, name, "does nothing.")
			signature := "func(dst *float32, n int)"
			if strings.HasPrefix(name, "sum") {
				signature = "func(x *float32, n int) float64"
			}
			c.SignatureExpr(signature)
			End(c)
		}
	}}

// A kernel is called in the active instruction set, or in the next lower one that has it. A kernel
// of a table has no such function.
func TestDispatch(t *testing.T) {
	files, err := some.Print()
	if err != nil {
		t.Fatal(err)
	}
	text := string(files[some.Dispatch()])
	for _, want := range []string{
		"func narrowAsm(dst *float32, n int) {\n\tnarrowAVX2(dst, n)\n}\n",
		"func bothAsm(dst *float32, n int) {\n\tif isa.Active == isa.AVX512 {\n\t\tbothAVX512(dst, n)\n" +
			"\t\treturn\n\t}\n\tbothAVX2(dst, n)\n}\n",
		"func sumAsm(x *float32, n int) float64 {\n\tif isa.Active == isa.AVX512 {\n\t\treturn sumAVX512(x, n)\n\t}\n" +
			"\treturn sumAVX2(x, n)\n}\n",
		"//go:build !noasm && !fspda_noasm\n", "import \"fspda/cpu/isa\"\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	none := string(files[some.NoDispatch()])
	for _, want := range []string{"func sumAsm(x *float32, n int) float64 { panic(isa.NoAssembly) }\n",
		"//go:build !amd64 || noasm || fspda_noasm\n"} {
		if !strings.Contains(none, want) {
			t.Errorf("no %q in\n%s", want, none)
		}
	}
	for name, text := range map[string]string{some.Dispatch(): text, some.NoDispatch(): none} {
		if strings.Contains(text, "tile1Asm") {
			t.Errorf("%s has a kernel of a table", name)
		}
	}
}
