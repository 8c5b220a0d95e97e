package web

import (
	"cmp"
	"slices"
	"strings"
)

// Ranking shows one number of many settings, each a line with a dot and a bar of one standard
// deviation at each side, the best first.
type Ranking struct {
	Title   string
	Caption []string // lines below the panels
	Panels  []RankingPanel
}

// RankingPanel is one column of a ranking.
type RankingPanel struct {
	Title  string
	Column string // column of the metrics, whose name and unit the axis has
	Best   string // max or min
	Dots   []Dot
}

// Dot is a setting of a ranking. A Mean that is not a number is listed last, without a dot.
type Dot struct {
	Name      string
	Mean, Std float64
	Marked    bool // the bar is drawn in another colour
}

func (d Dot) style() string {
	if d.Marked {
		return "v-dot1"
	}
	return "v-dot2"
}

const rankingRow = 17.0 // height of a line

// WriteImages writes the ranking as base.svg and base.png, or in the given formats.
func (r *Ranking) WriteImages(base string, formats ...string) error {
	if len(formats) == 0 {
		formats = []string{"svg", "png"}
	}
	return writePlot(r.draw(), base, formats...)
}

func (r *Ranking) draw() *drawing {
	d := &drawing{w: chartW * float64(max(1, len(r.Panels))), alt: r.Title + "."}
	d.text("v-title", edge, 22, start, r.Title)
	bottom := 40.0
	for i := range r.Panels {
		p := r.Panels[i].draw()
		d.put(p, chartW*float64(i), 40)
		d.alt += " " + p.alt
		bottom = max(bottom, 40+p.h)
	}
	d.h = d.caption(r.Caption, bottom+14)
	return d
}

// draw draws a panel.
func (p *RankingPanel) draw() *drawing {
	m := measureOf(p.Column)
	d := &drawing{w: chartW, alt: p.Title + ": " + m.title + "."}
	d.text("v-key", edge, 14, start, p.Title)
	dots := p.sorted()
	var x extent
	left := 0.0
	for _, dot := range dots {
		left = max(left, edge+textWidth("v-key", clean(dot.Name))+10)
		if finite(dot.Mean) {
			x.include(dot.Mean - spreadOf(dot))
			x.include(dot.Mean + spreadOf(dot))
		}
	}
	top := 24.0
	bottom := top + rankingRow*float64(len(dots)) + 6
	d.h = bottom + 44
	if !x.some {
		x.include(0)
		x.include(1)
	}
	a := newAxis(m.title, false, x, m.label)
	if strings.HasPrefix(p.Column, "test_acc") {
		a.keep(fraction)
	}
	at := func(v float64) float64 { return left + a.at(v)*(plotRight-left) }
	for _, t := range a.ticks {
		d.line("v-grid", point{at(t.at), top}, point{at(t.at), bottom})
		d.text("v-tick", at(t.at), bottom+16, middle, t.label)
	}
	d.line("v-axis", point{left, top}, point{left, bottom}, point{plotRight, bottom})
	d.text("v-label", (left+plotRight)/2, bottom+36, middle, m.title)
	for i, dot := range dots {
		y := top + rankingRow*(float64(i)+0.5) + 3
		d.text("v-key", left-8, y+4, end, clean(dot.Name))
		if !finite(dot.Mean) {
			d.text("v-note", left+8, y+4, start, "no value")
			continue
		}
		d.line("v-edge", point{at(dot.Mean - spreadOf(dot)), y}, point{at(dot.Mean + spreadOf(dot)), y})
		d.add(mark{kind: disc, style: dot.style(), at: []point{{at(dot.Mean), y}}, r: 4})
		d.alt += " " + dot.Name + " " + m.value(dot.Mean) + "."
	}
	return d
}

// sorted returns the dots, the best first and those without a value last.
func (p *RankingPanel) sorted() []Dot {
	lacks := func(d Dot) bool { return !finite(d.Mean) }
	dots := slices.DeleteFunc(slices.Clone(p.Dots), lacks)
	slices.SortStableFunc(dots, func(a, b Dot) int {
		if p.Best == "max" {
			a, b = b, a
		}
		return cmp.Compare(a.Mean, b.Mean)
	})
	for _, d := range p.Dots {
		if lacks(d) {
			dots = append(dots, d)
		}
	}
	return dots
}

func spreadOf(d Dot) float64 {
	if finite(d.Std) {
		return d.Std
	}
	return 0
}
