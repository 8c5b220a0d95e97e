//go:build !noasm

package cpu

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

const printNormSets = "FSPDA_TEST_PRINT_NORM_SETS"

// GODEBUG takes sets of loops away, the one in Go excepted.
func TestNormSetsCanBeSwitchedOff(t *testing.T) {
	if os.Getenv(printNormSets) != "" {
		for _, s := range normSets() {
			t.Logf("has %s.", s.name)
		}
		t.Logf("uses %s.", normal.name)
		return
	}
	for _, c := range []struct{ debug, without string }{
		{"cpu.avx512f=off", "avx512"}, {"cpu.avx2=off", "avx"}, {"cpu.fma=off", "avx"},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNormSetsCanBeSwitchedOff$", "-test.v")
		cmd.Env = append(os.Environ(), printNormSets+"=1", "GODEBUG="+c.debug)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text := string(out)
		if strings.Contains(text, "has "+c.without) || strings.Contains(text, "uses "+c.without) ||
			!strings.Contains(text, "has go.") {
			t.Errorf("GODEBUG=%s leaves\n%s", c.debug, out)
		}
	}
}

// The assembly is not called on less than it would read.
func TestNormLoopsCheckLengths(t *testing.T) {
	for _, k := range normSets() {
		if k == &normGo {
			continue
		}
		x, sums := make([]float32, 64), make([]float64, 16)
		p := poolRun{pixels: 2, channels: 16, rows: 1, cols: 1, line: 32, step: 32, across: 1}
		for name, f := range map[string]func(){
			"a short matrix":      func() { k.sums(normSpan{16, 5, 16, 64}, x, sums) },
			"no row":              func() { k.sums(normSpan{16, 0, 1, 64}, x, sums) },
			"sums of half a line": func() { k.sums(normSpan{16, 4, 16, 64}, x, sums[:8]) },
			"a fold of half":      func() { k.fold(sums[:8], sums[8:]) },
			"windows beyond x":    func() { k.maxPool(p, x[:47], x, x) },
			"part of a vector":    func() { k.affine[1][normPlain](normSpan{16, 4, 15, 0}, x, nil, x, x, x, x) },
			"part of another": func() {
				k.gradient[1][normPlain](normSpan{16, 4, 15, 0}, x, x, nil, x, x, x, x,
					x)
			},
			"places beyond at":  func() { k.maxPool(p, x, x, x[:31]) },
			"a pixel beyond dx": func() { k.maxPoolGrad[0](p, x, x, x[:47]) },
			"windows beyond dy": func() { k.maxPoolGrad[0](p, x[:31], x, x) },
		} {
			if got := message(t, f); !strings.HasPrefix(got, "cpu: ") {
				t.Errorf("%s, %s: panic %q", k.name, name, got)
			}
		}
	}
}
