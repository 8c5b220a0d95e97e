package main

import (
	"strings"
	"sync"
	"testing"

	"fspda/tools/asm/asmgen"
)

// The files in the repository are the generator's output.
func TestNoDiff(t *testing.T) {
	if err := file.Check("../../../cpu/vec"); err != nil {
		t.Error(err)
	}
}

// x86 are the instruction sets of amd64.
var x86 = sets[:2]

var printed = sync.OnceValues(func() (map[string][]string, error) { return asmgen.Functions(file) })

// functions returns the instructions of every function by name.
func functions(t *testing.T) map[string][]string {
	t.Helper()
	all, err := printed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// count returns the number of lines between the labels from and to that begin with op. An empty
// from stands for the beginning.
func count(lines []string, from, to, op string) int {
	n, inside := 0, from == ""
	for _, l := range lines {
		switch {
		case l == from+":":
			inside = true
		case inside && l == to+":":
			return n
		case inside && strings.HasPrefix(l, op+" "):
			n++
		}
	}
	return n
}
