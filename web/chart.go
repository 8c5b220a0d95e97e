package web

import (
	"fmt"
	"math"
	"slices"

	"fspda/internal/units"
)

// chart describes one chart of a run.
type chart struct {
	id     string // name used in file names and HTML
	title  string
	yTitle string
	curves []curve
	band   [2]string                    // keys of the lower and upper edge of a shaded band; empty for none
	log    bool                         // the y axis, whatever the values are
	label  func(v, step float64) string // label of a tick of the y axis
	value  func(v float64) string       // text of a single value
}

// curve is one line of a chart: a key of metrics.jsonl and its name in the legend.
type curve struct{ key, name string }

var charts = []chart{
	{id: "training_loss", title: "Training loss", yTitle: "loss over the whole training set", log: true,
		label: plainLabel, value: fourDigits,
		curves: []curve{{"train_loss_avg", "mean model"}, {"train_loss_worst", "worst agent"}}},
	{id: "test_accuracy", title: "Test accuracy", yTitle: "correct on the test set", label: percentLabel,
		value: units.Percent,
		curves: []curve{{"test_acc_avg", "mean model"}, {"test_acc_min", "worst agent"},
			{"test_acc_mean", "mean of agents"}},
		band: [2]string{"test_acc_min", "test_acc_max"}},
	{id: "consensus_error", title: "Consensus error", yTitle: "squared distance to mean model", log: true,
		label: plainLabel, value: fourDigits,
		curves: []curve{{"consensus", "sum over agents"}, {"consensus_max", "farthest agent"}}},
	{id: "gradient_norm", title: "Squared gradient norm", yTitle: "whole training loss", log: true,
		label: plainLabel, value: fourDigits,
		curves: []curve{{"grad_sq_avg", "mean model"}, {"grad_sq_worst", "worst agent"}}},
}

// textCharts lists the charts that runs of text have besides.
var textCharts = []chart{
	{id: "validation_loss", title: "Validation loss", yTitle: "nats a token of the validation text", log: true,
		label: plainLabel, value: fourDigits,
		curves: []curve{{"test_loss_avg", "mean model"}, {"test_loss_mean", "mean of agents"}}},
	{id: "perplexity", title: "Perplexity", yTitle: "of the validation text", log: true, label: plainLabel,
		value: fourDigits, curves: []curve{{"perplexity", "mean model"}}},
	{id: "bits_per_byte", title: "Bits per byte", yTitle: "of the validation text", label: plainLabel,
		value: fourDigits, curves: []curve{{"bits_per_byte", "mean model"}}},
}

// chartsOf lists the charts of a run with these metrics.
func chartsOf(m *metrics) []chart {
	if finite(m.last("perplexity")) {
		return slices.Concat(charts, textCharts)
	}
	return charts
}

func fourDigits(v float64) string { return units.Significant(v, 4) }

// xAxis describes the quantity on the x axis of a chart.
type xAxis struct {
	id, key, title string
	log            bool
	label          func(v, step float64) string
	value          func(v float64) string
	emptyNote      string // shown if the axis can show no point
}

// xAxesOf returns the x axes of a run: iterations, and bits in the accounting of bits_total.
func xAxesOf(accounting string) [2]xAxis {
	return [2]xAxis{
		{id: "iteration", key: "iteration", title: "iteration", label: countLabel,
			value: func(v float64) string { return "iteration " + grouped(v) }},
		{id: "bits", key: "bits_total", title: "bits sent by all agents, " + accounting + " accounting", log: true,
			label:     bitLabel,
			value:     func(v float64) string { return units.SI(v, "bit") },
			emptyNote: "no bits were sent at any evaluation"},
	}
}

// Sizes of a chart in drawing units. Phones show it at a scale of about 0.7.
const (
	chartW, chartH = 480.0, 320.0
	edge           = 12.0 // margin
	plotTop        = 56.0 // below the title and the legend
	bottomMargin   = 46.0 // ticks and title of the x axis
	rightMargin    = 18.0
	maxDots        = 32 // most evaluations that are marked with dots
)

// right and bottom are the ends of the plot.
func (p *plot) right() float64  { return p.w - rightMargin }
func (p *plot) bottom() float64 { return p.h - bottomMargin }

// plot is a chart that is being drawn.
type plot struct {
	*drawing
	chart *chart
	x, y  axis
	left  float64 // x position of the y axis
	xs    []float64
	m     *metrics
	xAxis *xAxis
}

func (c *chart) draw(m *metrics, axis *xAxis) *drawing { return c.layOut(m, axis, &Layout{}) }

// layOut is draw with a layout.
func (c *chart) layOut(m *metrics, axis *xAxis, l *Layout) *drawing {
	_, width := l.grid(1, 1)
	p := &plot{drawing: &drawing{w: width, h: chartHeight(width), scale: l.scale()}, chart: c, m: m, xAxis: axis,
		xs: m.column[axis.key]}
	p.alt = c.title + " against " + axis.title + "."
	if !l.NoTitle {
		p.text("v-title", edge, 22, start, c.title)
	}
	if why := p.chooseAxes(); why != "" {
		p.empty(why)
		p.alt += " Empty: " + why + "."
		return p.drawing
	}
	p.legend()
	p.axes()
	p.bandArea()
	for i := len(c.curves) - 1; i >= 0; i-- { // the first is drawn last, on top
		p.curve(i)
	}
	return p.drawing
}

// empty draws the frame of a chart without values, and why it has none.
func (p *plot) empty(why string) {
	p.add(mark{kind: polygon, style: "v-frame", at: rect(edge, plotTop, p.w-2*edge, p.bottom()-plotTop)})
	p.text("v-note", p.w/2, (plotTop+p.bottom())/2, middle, why)
}

// chooseAxes chooses both axes. If there is nothing to draw it returns the reason.
func (p *plot) chooseAxes() (why string) {
	ys, xs := p.values()
	if len(ys) == 0 {
		return notMeasured
	}
	p.y.log, p.x.log = p.chart.log, p.xAxis.log
	var x, y extent
	why = "0 at every evaluation"
	for i := range ys {
		if !p.y.shows(ys[i]) {
			continue
		}
		if p.x.shows(xs[i]) {
			x.include(xs[i])
			y.include(ys[i])
		} else if p.xAxis.emptyNote != "" {
			why = p.xAxis.emptyNote
		}
	}
	if !x.some {
		return why
	}
	for _, v := range p.xs { // all charts of a run share the x range
		if p.x.shows(v) {
			x.include(v)
		}
	}
	p.y = newAxis(p.chart.yTitle, p.chart.log, y, p.chart.label)
	p.x = newAxis(p.xAxis.title, p.xAxis.log, x, p.xAxis.label)
	if p.chart.id == "test_accuracy" {
		p.y.keep(fraction)
	}
	if !p.xAxis.log {
		p.x.keep(wholeNumber)
	}
	return ""
}

// notMeasured stands in a chart whose columns have no numbers.
const notMeasured = "not measured"

// values returns the finite values of the chart with their x positions.
func (p *plot) values() (ys, xs []float64) {
	for _, k := range p.chart.keys() {
		for r, v := range p.m.column[k] {
			if finite(v) && finite(p.xs[r]) {
				ys, xs = append(ys, v), append(xs, p.xs[r])
			}
		}
	}
	return ys, xs
}

// keys returns the columns that the chart shows.
func (c *chart) keys() []string {
	var keys []string
	for _, s := range c.curves {
		keys = append(keys, s.key)
	}
	if c.band[0] != "" {
		keys = append(keys, c.band[:]...)
	}
	return keys
}

// extent is the range of some values.
type extent struct {
	lo, hi float64
	some   bool
}

func (e *extent) include(v float64) {
	if !e.some {
		e.lo, e.hi, e.some = v, v, true
	}
	e.lo, e.hi = math.Min(e.lo, v), math.Max(e.hi, v)
}

func newAxis(title string, log bool, e extent, label func(v, step float64) string) axis {
	if log {
		return logAxis(title, e.lo, e.hi, label)
	}
	return linearAxis(title, e.lo, e.hi, label)
}

// legend draws the names of the curves between the title and the plot.
func (p *plot) legend() {
	x, y := edge, 42.0
	for i, c := range p.chart.curves {
		p.line(fmt.Sprintf("v-line%d", i+1), point{x, y - 4}, point{x + 22, y - 4})
		x = p.key(x+27, y, c.name)
	}
	if p.chart.band[0] != "" {
		p.add(mark{kind: polygon, style: "v-band1", at: rect(x, y-9, 22, 10)})
		p.key(x+27, y, "range of agents")
	}
}

// key draws a legend entry and returns the x position of the next one.
func (p *plot) key(x, y float64, name string) float64 {
	p.text("v-key", x, y, start, name)
	return x + textWidth("v-key", name) + 13
}

// axes draws the grid, the ticks and the titles of both axes.
func (p *plot) axes() {
	wide := 0.0
	for _, t := range p.y.ticks {
		wide = math.Max(wide, textWidth("v-tick", t.label))
	}
	p.left = edge + 18 + wide + 6
	for _, t := range p.y.ticks {
		_, y := p.project(p.x.min, t.at)
		p.line(gridStyle(t), point{p.left, y}, point{p.right(), y})
		if t.label != "" {
			p.text("v-tick", p.left-6, y+4, end, t.label)
		}
	}
	p.xTicks()
	p.line("v-axis", point{p.left, plotTop}, point{p.left, p.bottom()}, point{p.right(), p.bottom()})
	x := math.Min((p.left+p.right())/2, p.w-4-textWidth("v-label", p.x.title)/2)
	p.text("v-label", x, p.h-8, middle, p.x.title)
	p.add(mark{kind: upright, style: "v-label", at: []point{{edge + 8, (plotTop + p.bottom()) / 2}}, align: middle,
		text: p.y.title})
}

// xTicks draws the ticks of the x axis. Labels that would overlap the previous one are omitted.
func (p *plot) xTicks() {
	taken := 0.0
	for _, t := range p.x.ticks {
		x, _ := p.project(t.at, p.y.min)
		p.line(gridStyle(t), point{x, plotTop}, point{x, p.bottom()})
		half := textWidth("v-tick", t.label) / 2
		at := math.Min(x, p.w-4-half)
		if t.label == "" || at-half < taken {
			continue
		}
		p.text("v-tick", at, p.bottom()+16, middle, t.label)
		taken = at + half + 8
	}
}

func gridStyle(t tick) string {
	if t.label == "" {
		return "v-minor"
	}
	return "v-grid"
}

// project returns the position of a data point in the drawing.
func (p *plot) project(x, y float64) (px, py float64) {
	return p.left + p.x.at(x)*(p.right()-p.left), p.bottom() - p.y.at(y)*(p.bottom()-plotTop)
}

// bandArea shades the area between two columns.
func (p *plot) bandArea() {
	if p.chart.band[0] == "" {
		return
	}
	var lower, upper []point
	lo, hi := p.m.column[p.chart.band[0]], p.m.column[p.chart.band[1]]
	for r, x := range p.xs {
		if p.x.shows(x) && p.y.shows(lo[r]) && p.y.shows(hi[r]) {
			px, bottom := p.project(x, lo[r])
			_, top := p.project(x, hi[r])
			lower, upper = append(lower, point{px, bottom}), append(upper, point{px, top})
		}
	}
	if len(lower) < 2 {
		return
	}
	slices.Reverse(upper)
	p.add(mark{kind: polygon, style: "v-band1", at: append(lower, upper...)})
}

// curve draws the i-th curve through the values that the axes can show.
func (p *plot) curve(i int) {
	c := p.chart.curves[i]
	var at []point
	var rows []int
	for r, v := range p.m.column[c.key] {
		if p.x.shows(p.xs[r]) && p.y.shows(v) {
			x, y := p.project(p.xs[r], v)
			at, rows = append(at, point{x, y}), append(rows, r)
		}
	}
	if len(at) == 0 {
		return
	}
	if len(at) > 1 {
		p.line(fmt.Sprintf("v-line%d", i+1), at...)
	}
	column := p.m.column[c.key]
	p.alt += fmt.Sprintf(" %s: from %s to %s.", c.name, p.chart.value(column[rows[0]]),
		p.chart.value(column[rows[len(rows)-1]]))
	if len(at) > maxDots {
		return
	}
	r := 2.4
	if len(at) == 1 {
		r = 4
	}
	for k, q := range at {
		tip := fmt.Sprintf("%s, %s: %s", p.xAxis.value(p.xs[rows[k]]), c.name, p.chart.value(column[rows[k]]))
		p.add(mark{kind: disc, style: fmt.Sprintf("v-dot%d", i+1), at: []point{q}, r: r, tip: tip})
	}
}
