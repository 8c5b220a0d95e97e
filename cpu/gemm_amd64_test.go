//go:build !noasm

package cpu

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// implementations is the product with every instruction set of this processor.
func implementations() []implementation {
	var all []implementation
	for _, s := range tileSets {
		all = append(all, implementation{s.name, s.product, func() float64 { return s.peak(time.Millisecond) }})
	}
	return all
}

// Every set has a kernel for each height up to its highest, and a job's workspace has room for the
// strips of each.
func TestTileSets(t *testing.T) {
	for _, s := range tileSets {
		for i, row := range s.tiles {
			if row[0] == nil || row[1] == nil {
				t.Errorf("%s has no kernel of height %d", s.name, i+1)
			}
		}
		if high := len(s.tiles); high > stripRows {
			t.Errorf("%s: %d rows do not fit into a strip", s.name, high)
		}
		if blockCols%(2*s.lanes) != 0 {
			t.Errorf("%s: %d columns are no whole number of panels", s.name, blockCols)
		}
	}
}

const printSets = "FSPDA_TEST_PRINT_SETS"

// GODEBUG takes instruction sets away, for those who look for a fault or compare.
func TestInstructionSetsCanBeSwitchedOff(t *testing.T) {
	if os.Getenv(printSets) != "" {
		for _, s := range available() {
			t.Logf("has %s.", s.name)
		}
		return
	}
	for _, c := range []struct{ debug, without string }{
		{"cpu.avx512=off", "avx512"}, {"cpu.avx512f=off", "avx512"}, {"cpu.avx2=off", "avx"}, {"cpu.avx=off",
			"avx"}, {"cpu.fma=off", "avx"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInstructionSetsCanBeSwitchedOff$", "-test.v")
		cmd.Env = append(os.Environ(), printSets+"=1", "GODEBUG="+c.debug)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if strings.Contains(string(out), "has "+c.without) {
			t.Errorf("GODEBUG=%s leaves\n%s", c.debug, out)
		}
		if c.without == "avx512" && len(tileSets) > 0 && !strings.Contains(string(out), "has avx2.") {
			t.Errorf("GODEBUG=%s takes AVX2 too:\n%s", c.debug, out)
		}
	}
}

// A product is the same with the sets in any order, and with none.
func TestProductWithoutAssembly(t *testing.T) {
	defer func(s []*tileSet) { tileSets = s }(tileSets)
	tileSets = nil
	c := []float32{float32(math.NaN())}
	if gemm(false, false, 1, 1, 2, 2, []float32{1, 2}, 2, []float32{3, 4}, 1, 0, c, 1); c[0] != 22 {
		t.Errorf("got %v, want 22", c[0])
	}
}
