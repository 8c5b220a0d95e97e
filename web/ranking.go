package web

import (
	"cmp"
	"slices"
)

// Ranking shows one number of many settings, each a line with a dot and a bar of one standard
// deviation at each side, the best first.
type Ranking struct {
	Title   string
	Caption []string // lines below the panels
	Panels  []RankingPanel
	Layout  Layout
	Marked  string // name of the marked dots in the legend; empty: there is no legend
	Others  string // name of the other dots
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

// WriteImages writes the ranking as base.svg and base.png, or in the formats of the layout.
func (r *Ranking) WriteImages(base string) error {
	return writePlot(r.draw(), base, r.Layout.formats())
}

func (r *Ranking) draw() *drawing {
	across, width := r.Layout.grid(len(r.Panels), len(r.Panels))
	d := &drawing{w: width * float64(across), alt: r.Title + ".", scale: r.Layout.scale()}
	top := r.legend(d, d.heading(r.Title, &r.Layout))
	bottom := top
	for i := range r.Panels {
		if i%across == 0 {
			top = bottom
		}
		p := r.Panels[i].draw(width)
		d.put(p, width*float64(i%across), top)
		d.alt += " " + p.alt
		bottom = max(bottom, top+p.h)
	}
	d.h = bottom
	d.notes(r.Caption, &r.Layout)
	return d
}

// legend names the kinds of dots and their bars, from y on, and returns where the panels begin.
func (r *Ranking) legend(d *drawing, y float64) float64 {
	if r.Marked == "" {
		return y
	}
	x := edge
	for _, dot := range []struct {
		Dot
		name string
	}{{Dot{Marked: true}, r.Marked}, {Dot{}, r.Others}} {
		d.add(mark{kind: disc, style: dot.style(), at: []point{{x + 4, y - 4}}, r: 4})
		d.text("v-key", x+14, y, start, dot.name)
		x += 14 + textWidth("v-key", dot.name) + 16
	}
	d.line("v-edge", point{x, y - 4}, point{x + 22, y - 4})
	d.text("v-key", x+28, y, start, "± one standard deviation")
	return y + 14
}

func (p *RankingPanel) draw(width float64) *drawing {
	m := measureOf(p.Column)
	d, right := &drawing{w: width, alt: p.Title + ": " + m.title + "."}, width-rightMargin
	d.text("v-key", edge, 14, start, p.Title)
	dots := p.sorted()
	var x extent
	left := 0.0
	for _, dot := range dots {
		left = max(left, edge+textWidth("v-key", clean(dot.Name))+10)
		if finite(dot.Mean) {
			low, high := deviations(p.Column, dot.Mean, spreadOf(dot))
			x.include(low)
			x.include(high)
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
	if isShare(p.Column) {
		a.keep(fraction)
	}
	at := func(v float64) float64 { return left + a.at(v)*(right-left) }
	for _, t := range a.ticks {
		d.line("v-grid", point{at(t.at), top}, point{at(t.at), bottom})
		d.text("v-tick", at(t.at), bottom+16, middle, t.label)
	}
	d.line("v-axis", point{left, top}, point{left, bottom}, point{right, bottom})
	d.text("v-label", (left+right)/2, bottom+36, middle, m.title)
	for i, dot := range dots {
		y := top + rankingRow*(float64(i)+0.5) + 3
		d.text("v-key", left-8, y+4, end, clean(dot.Name))
		if !finite(dot.Mean) {
			d.text("v-note", left+8, y+4, start, "no value")
			continue
		}
		low, high := deviations(p.Column, dot.Mean, spreadOf(dot))
		d.line("v-edge", point{at(low), y}, point{at(high), y})
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
