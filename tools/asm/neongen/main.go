package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/build"

	"fspda/tools/asm/arm64"
	"fspda/tools/asm/asmgen"
)

const generator = "fspda/tools/asm/neongen"

// output is the assembly of a package, whose folder is relative to that of the repository.
type output struct {
	folder string
	asmgen.File
}

// outputs are the packages.
var outputs = []output{
	{"data/images/jpeg", asmgen.File{Generator: generator, Package: "jpeg", InTables: []string{"inverse"},
		Emit:   func(c *build.Context) { inverseData(c); declare(c, inverseDeclaration) },
		Direct: map[string]func(*arm64.Func){"inverseNEON": inverse}}},
	{"data/images", asmgen.File{Generator: generator, Package: "images",
		InTables: []string{"fromYCbCr", "weighSum", "interpolate"},
		Emit: func(c *build.Context) {
			colourData(c)
			declare(c, rowDeclarations...)
		},
		Direct: map[string]func(*arm64.Func){"fromYCbCrNEON": fromYCbCr, "weighSumNEON": weighSum,
			"interpolateNEON": interpolate}}},
	{"data", asmgen.File{Generator: generator, Package: "data", InTables: []string{"normalize", "pattern", "sum"},
		Emit: func(c *build.Context) {
			declare(c, normalizeDeclarations...)
			declare(c, resampleDeclarations...)
		},
		Direct: map[string]func(*arm64.Func){"normalizeNEON": normalize, "patternNEON": pattern,
			"sumLinesNEON": sumLines, "sumColumnsNEON": columns}}},
	{"dist", asmgen.File{Generator: generator, Package: "dist", InTables: []string{"sumRows", "lattice"},
		Emit: func(c *build.Context) {
			declare(c, sumRowsDeclaration)
			declare(c, latticeDeclarations...)
		},
		Direct: map[string]func(*arm64.Func){"sumRowsNEON": sumRows, "latticeEncodeNEON": latticeEncode,
			"latticeDecodeNEON": latticeDecode}}},
	{"dist/strata", asmgen.File{Generator: generator, Package: "strata", InTables: []string{"draw"},
		Emit:   func(c *build.Context) { declare(c, strataDeclaration) },
		Direct: map[string]func(*arm64.Func){"drawNEON": draw}}},
}

// declaration is a function without instructions.
type declaration struct{ name, signature, doc string }

func declare(c *build.Context, all ...declaration) {
	for _, d := range all {
		asmgen.Begin(c, d.name, d.doc)
		c.SignatureExpr(d.signature)
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintf(os.Stderr, "%s: %d arguments, expected one: the folder of the repository\n", generator,
			len(os.Args)-1)
		os.Exit(1)
	}
	for _, o := range outputs {
		if err := o.Write(filepath.Join(os.Args[1], o.folder)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// argument loads a parameter at an offset.
func argument(f *arm64.Func, name string, at int) arm64.Reg {
	r := f.General()
	f.Set(r, fmt.Sprintf("MOVD %s+%d(FP), R%%d", name, at))
	return r
}

// increase adds a number to a register.
func increase(f *arm64.Func, r arm64.Reg, by int) {
	f.Set(r, fmt.Sprintf("ADD $%d, R%%r, R%%d", by), r)
}

// repeat writes a loop of n turns, at least one.
func repeat(f *arm64.Func, label string, n arm64.Reg, body func()) {
	f.Label(label)
	body()
	f.Flags(n, "SUBS $1, R%r, R%d", n)
	f.Jump("NE", label)
}

// vectors returns n new vectors.
func vectors(f *arm64.Func, n int) []arm64.Reg {
	all := make([]arm64.Reg, n)
	for i := range all {
		all[i] = f.Vector()
	}
	return all
}
