package web

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
)

func parsed(t testing.TB, text string) *metrics {
	t.Helper()
	m, err := parseMetrics("test", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var axes = xAxesOf("shared-seed")

// find returns the marks with a style.
func find(d *drawing, style string) []mark {
	var found []mark
	for _, m := range d.marks {
		if m.style == style {
			found = append(found, m)
		}
	}
	return found
}

// The points of a curve lie where their values are: this one falls by a constant factor, so it is a
// straight line on a logarithmic axis, from the top left to the bottom right.
func TestChartPositions(t *testing.T) {
	m := parsed(t, `{"iteration":0,"consensus":100}
{"iteration":10,"consensus":10}
{"iteration":20,"consensus":null}
{"iteration":30,"consensus":0.1}
`)
	d := charts[2].draw(m, &axes[0])
	var at []point
	for _, k := range find(d, "v-line1") {
		if len(k.at) == 3 {
			at = k.at
		}
	}
	if at == nil {
		t.Fatal("no curve of three points")
	}
	slope := func(a, b point) float64 { return (b.y - a.y) / (b.x - a.x) }
	if s, want := slope(at[0], at[1]), slope(at[1], at[2]); s <= 0 || math.Abs(s-want) > 1e-9 {
		t.Errorf("slopes %g and %g, want equal and downward", s, want)
	}
	for _, p := range at {
		if p.x < 30 || p.x > chartW-rightMargin || p.y < plotTop || p.y > chartH-bottomMargin {
			t.Errorf("point %v lies outside the plot", p)
		}
	}
	dots := find(d, "v-dot1")
	if len(dots) != 3 || dots[1].tip != "iteration 10, sum over agents: 10" {
		t.Errorf("dots %v", dots)
	}
	if !strings.Contains(d.alt, "sum over agents: from 100 to 0.1") {
		t.Errorf("description %q", d.alt)
	}
}

func TestChartEmpty(t *testing.T) {
	for text, want := range map[string]string{
		"":                              notMeasured,
		`{"iteration":5}`:               notMeasured,
		`{"iteration":5,"consensus":0}`: "0 at every evaluation",
		`{"iteration":5,"consensus":1,"bits_total":0}`: "no bits were sent at any evaluation",
	} {
		d := charts[2].draw(parsed(t, text), &axes[1])
		if strings.Contains(text, "consensus") && !strings.Contains(text, "bits") {
			d = charts[2].draw(parsed(t, text), &axes[0])
		}
		if notes := find(d, "v-note"); len(notes) != 1 || notes[0].text != want {
			t.Errorf("%s: %v, want %q", text, notes, want)
		}
	}
}

// No text of any chart leaves the drawing or overlaps another.
func TestChartTextsDisjoint(t *testing.T) {
	for name, make := range runs {
		m, err := readMetrics(filepath.Join(make(t), "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range charts {
			for k := range axes {
				checkTexts(t, name+"/"+charts[i].id+"-"+axes[k].id, charts[i].draw(m, &axes[k]))
			}
		}
	}
}

func checkTexts(t *testing.T, name string, d *drawing) {
	t.Helper()
	type box struct {
		x0, y0, x1, y1 float64
		text           string
	}
	var boxes []box
	for _, m := range d.marks {
		if m.text == "" {
			continue
		}
		w, h := textWidth(m.style, m.text), styleOf(m.style).size*0.8
		p := m.at[0]
		b := box{p.x - w*float64(m.align)/2, p.y - h, p.x + w*(1-float64(m.align)/2), p.y, m.text}
		if m.kind == upright {
			b = box{p.x - h, p.y - w*(1-float64(m.align)/2), p.x, p.y + w*float64(m.align)/2, m.text}
		}
		if b.x0 < 0 || b.y0 < 0 || b.x1 > d.w || b.y1 > d.h {
			t.Errorf("%s: text %q leaves the drawing: %v", name, m.text, b)
		}
		for _, o := range boxes {
			if b.x0 < o.x1 && o.x0 < b.x1 && b.y0 < o.y1 && o.y0 < b.y1 {
				t.Errorf("%s: texts %q and %q overlap", name, b.text, o.text)
			}
		}
		boxes = append(boxes, b)
	}
}
