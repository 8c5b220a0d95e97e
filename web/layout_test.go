package web

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A picture of a given width has it in every format, whatever the columns, and texts of 8 points.
func TestLayout(t *testing.T) {
	c := comparison()
	c.Layout = Layout{Formats: []string{"pdf", "svg", "png"}, Width: 6.9 * 72, Columns: 3, NoTitle: true, NoNotes: true}
	base := filepath.Join(t.TempDir(), "figure")
	if err := c.WriteImages(base); err != nil {
		t.Fatal(err)
	}
	read := func(format string) []byte {
		text, err := os.ReadFile(base + "." + format)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if !bytes.Contains(read("pdf"), []byte("/MediaBox [0 0 496.80 ")) {
		t.Errorf("the PDF file is not 6.9 inches wide: %s", regexp.MustCompile(`/MediaBox.*`).Find(read("pdf")))
	}
	if svg := string(read("svg")); !strings.Contains(svg, `width="496.8`) || strings.Contains(svg,
		"A &lt;figure&gt; &amp; more</text>") ||
		strings.Contains(svg, "Scale 0.01.") || !strings.Contains(svg, ">first<") || strings.Contains(svg,
		">first: training loss") {
		t.Errorf("width, title, notes or titles of panels are wrong: %.400s", svg)
	}
	if img, err := png.DecodeConfig(bytes.NewReader(read("png"))); err != nil ||
		math.Abs(float64(img.Width)-6.9*paperDPI) > 2 {
		t.Errorf("%v, %d pixels wide", err, img.Width)
	}
	if size := styleOf("v-label").size * paperScale; size != 8 {
		t.Errorf("labels of %g points", size)
	}
	for _, k := range []struct {
		l      Layout
		n      int
		across int
	}{{Layout{}, 3, 2}, {Layout{Columns: 4}, 3, 3}, {Layout{Width: 496.8}, 8, 2}, {Layout{Width: 240}, 8, 1},
		{Layout{Width: 72}, 8, 1}} {
		if got, w := k.l.grid(k.n, 2); got != k.across || k.l.Width > 0 &&
			math.Abs(w*float64(got)*paperScale-k.l.Width) > 1e-9 {
			t.Errorf("%+v: %d panels of %g in a row, want %d", k.l, got, w, k.across)
		}
	}
	c.Layout = Layout{}
	if d := c.draw(); len(find(d, "v-title")) != 1 || len(find(d, "v-label")) < 5 {
		t.Errorf("the picture for a screen lacks its title or notes")
	}
}

// Every mark is within the picture, whatever the width.
func TestLayoutFits(t *testing.T) {
	for _, width := range []float64{0, 110, 240, 496.8} {
		for columns := range 4 {
			if width > 0 && columns > 0 && width/float64(columns) < NarrowestPanel {
				continue
			}
			c := comparison()
			c.Layout = Layout{Width: width, Columns: columns, NoTitle: true}
			d := c.draw()
			for _, m := range d.marks {
				for _, p := range m.at {
					if p.x < 0 || p.x > d.w+1e-9 || p.y < -1e-9 || p.y > d.h+1e-9 {
						t.Fatalf("width %g, %d columns: %+v is outside of %g by %g", width, columns, m, d.w, d.h)
					}
				}
			}
		}
	}
}

// The colours of the marks stay what they are in a PNG file, however rare, beside more frequent
// shades of others.
func TestPaletteKeepsColours(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 400, 100))
	for x := range 400 {
		for y := range 100 {
			img.SetRGBA(x, y, color.RGBA{0, uint8(x), uint8(255 - x/2), 255})
		}
	}
	rare := toneOf("wine").light
	img.SetRGBA(7, 7, rare)
	d := &drawing{}
	d.line("v-c6", point{0, 0}, point{1, 1})
	small := withPalette(img, d.tones())
	if got := color.RGBAModel.Convert(small.At(7, 7)); got != rare {
		t.Errorf("the rare colour %v became %v", rare, got)
	}
	if got := color.RGBAModel.Convert(withPalette(img, nil).At(7, 7)); got == rare {
		t.Error("the picture has too few colours for this test")
	}
}

// A legend names each curve once, without what its title and panels say.
func TestLegendNames(t *testing.T) {
	c := &Comparison{Curves: []Curve{{Name: "SA (i) (3 seeds)", Group: "i", Style: 1}, {Name: "SA (ii) (3 seeds)",
		Group: "ii", Style: 1},
		{Name: "LED (3 seeds)", Group: "i"}}}
	names := c.legendNames()
	if got := fmt.Sprint(names); got != "[SA SA LED]" || !c.named(1, names) || c.named(2, names) {
		t.Errorf("legend %s", got)
	}
	c.Curves[2].Name = "LED (2 seeds)"
	if got := c.legendNames()[0]; got != "SA (i) (3 seeds)" {
		t.Errorf("legend %q beside another number of seeds", got)
	}
}

// Bands and bars of accuracies end at 0 and 1.
func TestDeviations(t *testing.T) {
	if low, high := deviations("test_acc_min", 0.9, 0.95); low != 0 || high != 1 {
		t.Errorf("from %g to %g", low, high)
	}
	if low, high := deviations("test_loss_avg", 0.9, 0.95); math.Abs(low+0.05) > 1e-12 || math.Abs(high-1.85) > 1e-12 {
		t.Errorf("a loss from %g to %g", low, high)
	}
	r := &Ranking{Title: "one", Marked: "mine", Others: "others", Panels: []RankingPanel{{Column: "test_acc_mean",
		Best: "max",
		Dots: []Dot{{Name: "a", Mean: 0.9, Std: 0.5}, {Name: "b", Mean: 0.1, Std: 0.01, Marked: true}}}}}
	d := r.draw()
	right := 0.0
	for _, m := range find(d, "v-tick") {
		if m.text == "100 %" {
			right = m.at[0].x
		}
	}
	bars := find(d, "v-edge")
	if len(bars) != 3 || right == 0 || bars[1].at[1].x > right+1e-9 {
		t.Errorf("bars %v reach beyond %g", bars, right)
	}
	var texts []string
	for _, m := range find(d, "v-key") {
		texts = append(texts, m.text)
	}
	if got := strings.Join(texts, "|"); !strings.Contains(got, "mine|others|± one standard deviation") {
		t.Errorf("legend %s", got)
	}
}

// Seconds have their unit, and names of columns of language models are words.
func TestNamesOfAxes(t *testing.T) {
	c := &Comparison{}
	for column, want := range map[string]string{"virtual_time": "virtual time, last agent (s)",
		"test_loss_avg": "test loss, mean model",
		"perplexity":    "perplexity, mean model"} {
		if got := c.measureOf(column).title; got != want {
			t.Errorf("%s is %q, want %q", column, got, want)
		}
	}
	c.TimeUnit = "mean gradients"
	if got := c.measureOf("virtual_time").title; got != "virtual time, last agent (mean gradients)" {
		t.Error(got)
	}
	if isBits("bits_per_byte") || !isBits("bits_packed") || isShare("test_loss_avg") || !isShare("test_acc_avg") {
		t.Error("kinds of columns")
	}
}
