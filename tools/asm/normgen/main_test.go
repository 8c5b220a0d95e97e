package main

import (
	"strings"
	"sync"
	"testing"

	"fspda/tools/asm/asmgen"
)

// The files in the repository are the generator's output.
func TestNoDiff(t *testing.T) {
	if err := file.Check("../../../cpu/norm"); err != nil {
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

// between returns the lines from a label to the first line with a prefix.
func between(lines []string, label, end string) (inside []string) {
	for _, l := range lines {
		switch {
		case l == label+":":
			inside = []string{}
		case inside != nil && strings.HasPrefix(l, end):
			return inside
		case inside != nil:
			inside = append(inside, l)
		}
	}
	return inside
}

// count returns the number of lines with an instruction.
func count(lines []string, op string) (n int) {
	for _, l := range lines {
		if l == op || strings.HasPrefix(l, op+" ") {
			n++
		}
	}
	return n
}

// Every function clears the upper halves of registers, and uses non-temporal stores only if its
// name says so.
func TestEveryFunction(t *testing.T) {
	for name, lines := range functions(t) {
		if returns, zeroed := count(lines, "RET"), count(lines, "VZEROUPPER"); returns == 0 || zeroed != returns &&
			name != "storeFenceAVX2" {
			t.Errorf("%s returns %d times and zeroes upper halves %d times", name, returns, zeroed)
		}
		if past := count(lines, "VMOVNTPS") > 0; past != strings.Contains(name, "Stream") {
			t.Errorf("%s: non-temporal stores: %v", name, past)
		}
	}
}
