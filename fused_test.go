package fspda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// exact lists what the compiler may fuse on arm64 without any change of bits, in files that
// compute results: the product is exact, or the instruction is wanted.
var exact = []string{
	// a product with a power of two, or of integers
	"float64(d.tokens[k])/2", "s.Float64()", "local.Float64()", "2*s.Float32()", "2*radius", "float64(l.Colours)/2",
	"float64(b.sketched()[0]+", "1+dual/2)", "return 2 * attentionFLOPs(c)", "device.OrthogonalSteps * 2 * (",
	"math.Log(u) < float64(0.5*x*x)+d",
	// a product of two float32 in float64
	"square+float64(v)*float64(v)", "sum += float64(x[i*k+l]) * float64(y[l*n+j])",
	// wanted
	"math.FMA(",
	// a tolerance, a measured time, the text of an error, or the objective of a test
	"run*density-1", "2.4e-7*math.Abs(want)+1e-8", "units.Span(step.Seconds()", "%.4g", "0.1*sign(t)",
	"0.5*float64(k)*sign(i)",
}

// computing are the folders whose numbers are results, or decide about them.
var computing = []string{"cpu/", "data/", "dist/", "internal/", "model/", "train/"}

// On arm64 the compiler fuses a product and a sum unless a conversion stands between them. Where
// results depend on it there is one.
func TestNothingIsFused(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("compiles all packages for arm64")
	}
	cmd := exec.Command("go", "build", "-trimpath=false", "-gcflags=fspda/...=-S", "./...")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("go build: %v", err)
	}
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	fused := regexp.MustCompile(`\(([^()]+\.go):(\d+)\)\s+FN?M(?:ADD|SUB)[SD]\s`)
	seen := map[string]bool{}
	for _, m := range fused.FindAllStringSubmatch(log.String(), -1) {
		name, err := filepath.Rel(home, m[1])
		if err != nil || !slices.ContainsFunc(computing, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		if name == "cpu/tile/sums_arm64.go" { // a product is defined by fused multiply-adds
			seen[name] = true
			continue
		}
		line := lineOf(t, name, m[2])
		if !slices.ContainsFunc(exact, func(e string) bool { return strings.Contains(line, e) }) {
			t.Errorf("%s:%s: the compiler fuses a product and a sum of %q: convert the product, float64(a*b) + c", name,
				m[2], line)
		}
	}
	if !seen["cpu/tile/sums_arm64.go"] {
		t.Error("no fused instruction is found where one must be")
	}
}

// lineOf returns a line of a file without white space around it.
func lineOf(t *testing.T, name, number string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for line := range strings.Lines(string(text)) {
		if i++; strconv.Itoa(i) == number {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
