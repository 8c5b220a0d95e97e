package web

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runsOfSeeds are two runs, the second of which is shorter.
func runsOfSeeds() []Curve {
	run := func(loss ...float64) Curve {
		c := Curve{Columns: map[string][]float64{"train_loss_worst": loss}}
		for i := range loss {
			c.Columns["iteration"] = append(c.Columns["iteration"], float64(10*i))
		}
		return c
	}
	return []Curve{run(4, 2, 1, 0.5), run(4, 3, math.NaN())}
}

func TestMeanCurve(t *testing.T) {
	c := MeanCurve("mine", "i", runsOfSeeds())
	if got := c.Columns["train_loss_worst"]; len(got) != 3 || got[0] != 4 || got[1] != 2.5 || !math.IsNaN(got[2]) {
		t.Errorf("mean %v", got)
	}
	if got := c.Spread["train_loss_worst"]; got[0] != 0 || math.Abs(got[1]-math.Sqrt(0.5)) > 1e-15 ||
		!math.IsNaN(got[2]) {
		t.Errorf("spread %v", got)
	}
	if one := MeanCurve("one", "", runsOfSeeds()[:1]); one.Name != "one" || one.Spread != nil || one.Runs != nil ||
		len(one.Columns["iteration"]) != 4 {
		t.Errorf("%+v", one)
	}
}

// A mean has a band; its runs are drawn on request. A band that reaches below zero ends at the
// lower edge of a logarithmic plot, and does not stretch its axis.
func TestBand(t *testing.T) {
	runs := runsOfSeeds()
	runs[0].Columns["train_loss_worst"][1], runs[1].Columns["train_loss_worst"][2] = 900, 1.5
	c := &Comparison{Title: "seeds", Curves: []Curve{MeanCurve("mine", "", runs)}, Tables: []PageTable{{
		Title: "Cost", Note: "bits & more", Lines: [][]string{{"run", "90 %"}, {"<mine>", "3 ± 1"}}}}}
	c.Panels = []Panel{
		{Column: "train_loss_worst", X: "iteration", Log: true},
		{Column: "train_loss_worst", X: "iteration"},
	}
	for _, raw := range []bool{false, true} {
		c.Raw = raw
		base := filepath.Join(t.TempDir(), "figure")
		if err := c.WriteImages(base); err != nil {
			t.Fatal(err)
		}
		if err := c.WritePage(base + ".html"); err != nil {
			t.Fatal(err)
		}
		svg, err := os.ReadFile(base + ".svg")
		if err != nil {
			t.Fatal(err)
		}
		count := func(style string) int { return bytes.Count(svg, []byte(`<path class="`+style+`"`)) }
		if thin := count("v-r1"); count("v-b1") != 2 || thin != map[bool]int{false: 0, true: 4}[raw] {
			t.Errorf("raw %v: %d bands, %d thin lines", raw, count("v-b1"), thin)
		}
		band := regexp.MustCompile(`<path class="v-b1" d="([^"]*)"`).FindSubmatch(svg)
		if bytes.ContainsAny(band[1], "NI") || !bytes.Contains(svg, []byte("mine ends at 1.25.")) {
			t.Errorf("band %s", band[1])
		}
		page, err := os.ReadFile(base + ".html")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"spread":{`, `"runs":[{`, "<h2>Cost</h2>", "&lt;mine&gt;", "bits &amp; more",
			"each seed",
			`<td role="cell" data-label="90 %">3 ± 1</td>`,
			`"raw":` + map[bool]string{false: "false", true: "true"}[raw]} {
			if !strings.Contains(string(page), want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	}
}
