package web

import (
	"bytes"
	"encoding/json"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// comparison has two groups of curves. One curve has a NaN, and one a zero, which a logarithmic
// axis cannot show.
func comparison() *Comparison {
	curve := func(name, group string, loss ...float64) Curve {
		c := Curve{Name: name, Group: group, Columns: map[string][]float64{"train_loss_worst": loss}}
		for i := range loss {
			c.Columns["iteration"] = append(c.Columns["iteration"], float64(10*i))
			c.Columns["bits_packed"] = append(c.Columns["bits_packed"], float64(1000*i))
		}
		return c
	}
	return &Comparison{Title: "A <figure> & more", Caption: []string{"Scale 0.01. </script><b>not a tag</b>"},
		Across: 2,
		Panels: []Panel{
			{Title: "first", Group: "i", Column: "train_loss_worst", X: "iteration", Log: true},
			{Group: "ii", Column: "train_loss_worst", X: "bits_packed"},
			{Column: "consensus", X: "iteration", Log: true},
		},
		Curves: []Curve{curve("one</script>", "i", 3, 2, 0, 1), curve("two", "i", 4, math.NaN(), 2),
			curve("three", "ii", 5, 4, 3)},
	}
}

func TestDropEmpty(t *testing.T) {
	c := comparison()
	c.DropEmpty()
	if len(c.Panels) != 2 || c.Panels[1].Group != "ii" {
		t.Errorf("panels %+v remain, want the two of the loss: no curve has a consensus error", c.Panels)
	}
	c.Panels = []Panel{{Column: "grad_sq_worst", X: "iteration"}, {Column: "consensus", X: "epoch"}}
	c.DropEmpty()
	if len(c.Panels) != 1 || c.Panels[0].Column != "grad_sq_worst" {
		t.Errorf("panels %+v remain, want the first: one panel must stay", c.Panels)
	}
}

func TestComparisonPictures(t *testing.T) {
	base := filepath.Join(t.TempDir(), "figure")
	c := comparison()
	if err := c.WriteImages(base); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(base + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A &lt;figure&gt; &amp; more", "first: training loss, worst agent",
		"packed accounting", "not measured", "Scale 0.01.",
		">two<", "three ends at 3", "v-c1", "v-c2", "v-c3"} {
		if !bytes.Contains(svg, []byte(want)) {
			t.Errorf("the picture lacks %q", want)
		}
	}
	// zero on a log axis, NaN, and zero bits are omitted
	for style, points := range map[string]int{"v-c1": 3, "v-c2": 2, "v-c3": 2} {
		paths := regexp.MustCompile(`<path class="`+style+`" d="([^"]*)"`).FindAllSubmatch(svg, -1)
		if len(paths) != 2 { // the legend and the curve
			t.Errorf("%d lines of style %s, want 2", len(paths), style)
			continue
		}
		if n := bytes.ContainsAny(paths[1][1], "N"); n || bytes.Count(paths[1][1], []byte("L"))+1 != points {
			t.Errorf("curve %s is %s, want %d points", style, paths[1][1], points)
		}
	}
	file, err := os.Open(base + ".png")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	img, err := png.Decode(file)
	if err != nil || img.Bounds().Dx() != int(2*chartW*pngDPI/72) {
		t.Errorf("%v, %v wide", err, img.Bounds().Dx())
	}
}

// A curve keeps its colour if other curves are missing.
func TestCurveStyles(t *testing.T) {
	c := &Comparison{Curves: []Curve{{}, {Style: 8}, {Style: curveStyles + 2}}}
	for i, want := range []string{"v-c1", "v-c8", "v-c2"} {
		if got := c.style(i); got != want {
			t.Errorf("curve %d has style %s, want %s", i, got, want)
		}
		styleOf(want)
	}
}

// The page is self-contained, escapes names, and holds the numbers.
func TestComparisonPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figure.html")
	if err := comparison().WritePage(path); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	if urls := regexp.MustCompile(`(?i)(src|href)\s*=|@import|url\(|fetch\(|XMLHttp`).FindString(text); urls != "" {
		t.Errorf("the page loads something: %s", urls)
	}
	if strings.Count(text, "</script>") != 2 {
		t.Errorf("%d closing script tags, want 2: a text was not escaped", strings.Count(text, "</script>"))
	}
	if strings.Contains(text, "<b>not a tag") {
		t.Error("a caption became markup")
	}
	_, rest, _ := strings.Cut(text, `id="data">`)
	raw, _, _ := strings.Cut(rest, "</script>")
	var d comparisonData
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Curves) != 3 || d.Curves[0].Name != "one</script>" || d.Curves[1].Columns["train_loss_worst"][1] != nil ||
		*d.Curves[2].Columns["train_loss_worst"][2] != 3 {
		t.Errorf("the page holds %+v", d)
	}
	if strings.Join(d.Xs, " ") != "iteration bits_packed" || d.Names["consensus"] == "" {
		t.Errorf("axes %v, names %v", d.Xs, d.Names)
	}
}

func TestReadCurve(t *testing.T) {
	if _, err := ReadCurve(t.TempDir(), "a"); err == nil {
		t.Error("no error for a folder without metrics")
	}
	for text, want := range map[string][]string{
		"one two three":     {"one two", "three"},
		"":                  {""},
		"abcdefghijklmnopq": {"abcdefghijklmnopq"},
	} {
		got := wrapped("v-label", text, textWidth("v-label", "one two")+1)
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%q wraps to %q, want %q", text, got, want)
		}
	}
}
