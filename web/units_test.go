package web

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fspda/internal/units"
)

func TestGrouped(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1234: "1\u2009234", 20000: "20\u2009000",
		-1234567: "−1\u2009234\u2009567", math.Inf(1): units.Dash} {
		if got := grouped(v); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The script of the pages writes a number as Go does.
func TestFormatsOfScript(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("skipped: needs node")
	}
	numbers := []float64{0, 1, 999, 999.4, 999.5, 1000, 1234, 9999, 10000, 123456, 999999, 1e6, 1e-3, 9.99e-4, 1e12}
	for s := rand.New(rand.NewPCG(1, 2)); len(numbers) < 1000; {
		numbers = append(numbers, (2*s.Float64()-1)*math.Pow(10, float64(s.IntN(16)-5)))
	}
	input, err := json.Marshal(numbers)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("static/format.js")
	if err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(t.TempDir(), "formats.mjs")
	script = append(script, "\nconsole.log(JSON.stringify("+string(input)+
		".map(v => [grouped(v), bits(v), percent(v), significant(v, 4)])))\n"...)
	if err := os.WriteFile(module, script, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, module).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got [][4]string
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(numbers) {
		t.Fatalf("%d results, %v", len(got), err)
	}
	for i, v := range numbers {
		want := [4]string{grouped(v), units.SI(v, "bit"), units.Percent(v), units.Significant(v, 4)}
		if got[i] != want {
			t.Errorf("%v: the script writes %q, Go %q", v, got[i], want)
		}
	}
}
