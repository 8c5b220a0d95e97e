package web

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestSI(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "bit", "0 bit"}, {5, "bit", "5 bit"}, {999, "bit", "999 bit"}, {999.6, "bit", "1 kbit"}, {1234567, "bit",
			"1.23 Mbit"},
		{10e6, "bit", "10 Mbit"}, {1.2e9, "bit", "1.2 Gbit"}, {9.996e11, "B", "1 TB"}, {3e20, "bit", "300 Ebit"}, {3e25,
			"bit", "3e7 Ebit"}, {-2500, "B", "−2.5 kB"},
		{12, "", "12"}, {45000, "", "45 k"}, {math.NaN(), "bit", dash}, {math.Inf(1), "bit", dash},
	} {
		if got := si(c.v, c.unit); got != c.want {
			t.Errorf("si(%g, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{significant(0, 3), "0"}, {significant(0.12345, 4), "0.1235"}, {significant(1.5, 4),
			"1.5"}, {significant(123456, 3), "123000"},
		{significant(1234567, 3), "1.23e6"}, {significant(-2e-7, 3), "−2e−7"}, {significant(1e-300, 4),
			"1e−300"}, {significant(math.NaN(), 3), dash},
		{significant(math.Inf(-1), 3), dash}, {significant(5e6, 1), "5e6"},
		{percent(0.97421), "97.42 %"}, {percent(0), "0.00 %"}, {percent(1), "100.00 %"}, {percent(math.NaN()), dash},
		{grouped(0), "0"}, {grouped(1234), "1\u2009234"}, {grouped(20000), "20\u2009000"}, {grouped(-1234567),
			"−1\u2009234\u2009567"}, {grouped(math.NaN()), dash},
		{duration(0), "0 s"}, {duration(5.678), "5.68 s"}, {duration(59.96), "1 min 00 s"}, {duration(184),
			"3 min 04 s"}, {duration(3599.6), "1 h 00 min"},
		{duration(3720), "1 h 02 min"}, {duration(100 * 3600), "100 h 00 min"}, {duration(1e300),
			"1e300 s"}, {duration(-1), dash}, {duration(math.NaN()), dash},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
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
		if want := [4]string{grouped(v), si(v, "bit"), percent(v), significant(v, 4)}; got[i] != want {
			t.Errorf("%v: the script writes %q, Go %q", v, got[i], want)
		}
	}
}
