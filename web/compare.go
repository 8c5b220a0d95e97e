package web

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fspda/internal/units"
)

// Curve is one line of a [Comparison]: columns of numbers by name, as in metrics.jsonl.
type Curve struct {
	Name    string // name shown in legends
	Run     string // its full name, which the page shows beside Name; may be empty
	Group   string // a panel with a group shows only curves of that group
	Style   int    // style counted from 1; 0 chooses by the curve's index
	Columns map[string][]float64

	// of a mean over seeds, which [MeanCurve] makes: standard deviations by column, and the runs
	Spread map[string][]float64
	Runs   []Curve
}

// Panel is one image of a comparison.
type Panel struct {
	Title  string `json:"title"`  // empty: the name of the column
	Group  string `json:"group"`  // empty: all curves
	Column string `json:"column"` // values of the y axis
	X      string `json:"x"`      // iteration, epoch, or a column of bits
	Log    bool   `json:"log"`    // the y axis is logarithmic
	LogX   bool   `json:"log_x"`  // the x axis is logarithmic; an axis of bits always is
}

// Comparison shows several runs in the same charts.
type Comparison struct {
	Title   string
	Caption []string // lines below the panels
	Panels  []Panel
	Across  int // panels in a row, if the layout does not say
	Layout  Layout
	Curves  []Curve
	Raw     bool // draw the single runs of means too
	Tables  []PageTable
	// TimeUnit is the unit of virtual time; empty: s.
	TimeUnit string
}

// PageTable is a table of a comparison's page.
type PageTable struct {
	Title, Note string
	Lines       [][]string // the first is the head
}

// ReadCurve reads the metrics of the run in folder dir.
func ReadCurve(dir, name string) (Curve, error) {
	m, err := readMetrics(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return Curve{}, err
	}
	return Curve{Name: name, Columns: m.column}, nil
}

// measure describes how a column is shown.
type measure struct {
	column, title string
	label         func(v, step float64) string
	value         func(v float64) string
}

// measures lists the known columns. Others are shown by their name.
var measures = []measure{
	{"iteration", "iteration", countLabel, grouped},
	{"epoch", "epoch", countLabel, fourDigits},
	{"virtual_time", "virtual time, last agent", countLabel, fourDigits},
	{"virtual_time_mean", "virtual time, mean of agents", countLabel, fourDigits},
	{"wall_s", "wall-clock time (s)", countLabel, fourDigits},
	{"bits_shared_seed", "bits sent by all agents, shared-seed accounting", bitLabel, bitValue},
	{"bits_packed", "bits sent by all agents, packed accounting", bitLabel, bitValue},
	{"bits_reference", "bits sent by all agents, reference accounting", bitLabel, bitValue},
	{"grad_sq_worst", "squared gradient norm, worst agent", plainLabel, fourDigits},
	{"grad_sq_avg", "squared gradient norm, mean model", plainLabel, fourDigits},
	{"train_loss_worst", "training loss, worst agent", plainLabel, fourDigits},
	{"train_loss_avg", "training loss, mean model", plainLabel, fourDigits},
	{"train_data_loss_avg", "training loss without L2 term, mean model", plainLabel, fourDigits},
	{"consensus", "consensus error, sum over agents", plainLabel, fourDigits},
	{"consensus_max", "consensus error, farthest agent", plainLabel, fourDigits},
	{"test_loss_avg", "test loss, mean model", plainLabel, fourDigits},
	{"test_loss_mean", "test loss, mean of agents", plainLabel, fourDigits},
	{"perplexity", "perplexity, mean model", plainLabel, fourDigits},
	{"bits_per_byte", "bits per byte, mean model", plainLabel, fourDigits},
	{"test_acc_min", "test accuracy, worst agent", percentLabel, units.Percent},
	{"test_acc_mean", "test accuracy, mean of agents", percentLabel, units.Percent},
	{"test_acc_avg", "test accuracy, mean model", percentLabel, units.Percent},
	{"test_acc_max", "test accuracy, best agent", percentLabel, units.Percent},
	{"test_top5_avg", "top-5 accuracy, mean model", percentLabel, units.Percent},
	{"lr", "alpha", plainLabel, fourDigits},
	{"eta", "eta", plainLabel, fourDigits},
}

func bitValue(v float64) string { return units.SI(v, "bit") }

func (p *Panel) logX() bool { return p.LogX || isBits(p.X) }

// isBits reports whether a column counts bits.
func isBits(column string) bool {
	return strings.HasPrefix(column, "bits_") && column != "bits_per_byte"
}

// Title returns the name of a column for people; one that is not known is its own name.
func Title(column string) string { return measureOf(column).title }

func measureOf(column string) measure {
	for _, m := range measures {
		if m.column == column {
			return m
		}
	}
	return measure{column, column, plainLabel, fourDigits}
}

// style returns the style name of the i-th curve. Styles repeat after the last one.
func (c *Comparison) style(i int) string {
	if s := c.Curves[i].Style; s > 0 {
		i = s - 1
	}
	return fmt.Sprintf("v-c%d", i%curveStyles+1)
}

// WriteImages writes the panels, with a common legend above and the caption below, as base.svg
// and base.png, or in the formats of the layout.
func (c *Comparison) WriteImages(base string) error {
	return writePlot(c.draw(), base, c.Layout.formats())
}

// measureOf describes a column, with the unit of virtual time.
func (c *Comparison) measureOf(column string) measure {
	m := measureOf(column)
	if strings.HasPrefix(column, "virtual_time") {
		m.title += " (" + cmp.Or(c.TimeUnit, "s") + ")"
	}
	return m
}

// draw draws all panels into one drawing.
func (c *Comparison) draw() *drawing {
	across, width := c.Layout.grid(len(c.Panels), c.Across)
	height := chartHeight(width) - raise
	d := &drawing{w: width * float64(across), alt: c.Title + ".", scale: c.Layout.scale()}
	y := d.heading(c.Title, &c.Layout)
	top := c.legend(d, y) + 8
	for i := range c.Panels {
		p := c.panel(&c.Panels[i], width)
		d.put(p, width*float64(i%across), top+height*float64(i/across))
		d.alt += " " + p.alt
	}
	d.h = top + height*float64((len(c.Panels)+across-1)/across)
	d.notes(c.Caption, &c.Layout)
	return d
}

// heading writes the title, unless the layout leaves it out, and returns where the next line is.
func (d *drawing) heading(title string, l *Layout) (y float64) {
	if l.NoTitle {
		return 16
	}
	y = 22
	for _, part := range wrapped("v-title", title, d.w-2*edge) {
		d.text("v-title", edge, y, start, part)
		y += 20
	}
	return y
}

// notes writes the caption below, unless the layout leaves it out.
func (d *drawing) notes(lines []string, l *Layout) {
	if !l.NoNotes && len(lines) > 0 {
		d.h = d.caption(lines, d.h+14)
	}
}

// caption writes lines of text from y on, and returns where they end.
func (d *drawing) caption(lines []string, y float64) float64 {
	for _, line := range lines {
		for _, part := range wrapped("v-label", line, d.w-2*edge) {
			d.text("v-label", edge, y, start, part)
			y += 16
		}
	}
	return y
}

// put adds the marks of another drawing, shifted by (dx, dy).
func (d *drawing) put(o *drawing, dx, dy float64) {
	for _, m := range o.marks {
		m.at = slices.Clone(m.at)
		for i := range m.at {
			m.at[i].x += dx
			m.at[i].y += dy
		}
		d.add(m)
	}
}

// wrapped breaks a line between words so that each part is at most width wide, single words
// excepted.
func wrapped(style, line string, width float64) []string {
	var lines []string
	now := ""
	for word := range strings.FieldsSeq(line) {
		if longer := strings.TrimSpace(now + " " + word); now == "" || textWidth(style, longer) <= width {
			now = longer
			continue
		}
		lines, now = append(lines, now), word
	}
	return append(lines, now)
}

// legend draws the names of the curves from y on and returns the y position of its last line.
func (c *Comparison) legend(d *drawing, y float64) float64 {
	x, names := edge, c.legendNames()
	for i, name := range names {
		if c.named(i, names) {
			continue
		}
		w := 27 + textWidth("v-key", name) + 16
		if x > edge && x+w > d.w-edge {
			x, y = edge, y+18
		}
		d.line(c.style(i), point{x, y - 4}, point{x + 22, y - 4})
		d.text("v-key", x+27, y, start, name)
		x += w
	}
	return y
}

// seedsSuffix is the end of the name of a mean over seeds.
var seedsSuffix = regexp.MustCompile(` \([0-9]+ seeds\)$`)

// legendNames returns the names of the curves as the legend has them: without the number of seeds,
// if all curves have the same, and without the group, which the panels name.
func (c *Comparison) legendNames() []string {
	names, ends := make([]string, len(c.Curves)), map[string]bool{}
	for i, cu := range c.Curves {
		names[i] = clean(cu.Name)
		ends[seedsSuffix.FindString(names[i])] = true
	}
	for i, cu := range c.Curves {
		if len(ends) == 1 {
			names[i] = seedsSuffix.ReplaceAllString(names[i], "")
		}
		if cu.Group != "" {
			names[i] = strings.TrimSuffix(names[i], " ("+clean(cu.Group)+")")
		}
	}
	return names
}

// named reports whether an earlier curve has the name and the style of curve i.
func (c *Comparison) named(i int, names []string) bool {
	for k := range i {
		if names[k] == names[i] && c.style(k) == c.style(i) {
			return true
		}
	}
	return false
}

// raise is the height of the legend of a chart, which a panel does not have.
const raise = 34

// panel draws one panel. Its plot area is as large as in a single run's chart of this width.
func (c *Comparison) panel(p *Panel, width float64) *drawing {
	xm, ym := c.measureOf(p.X), c.measureOf(p.Column)
	pl := &plot{drawing: &drawing{w: width, h: chartHeight(width)}}
	title := p.Title
	if title != "" {
		title += ": "
	}
	title += ym.title
	shown := title
	if c.Layout.NoTitle || textWidth("v-key", title) > width-edge {
		shown = p.Title // the axis says the rest
	}
	pl.alt = title + " against " + xm.title + "."
	logX := p.logX()
	var x, y extent
	for _, cu := range c.curvesOf(p) {
		c.include(cu, p, logX, &x, &y)
	}
	if !x.some {
		pl.empty(notMeasured)
		return raised(pl.drawing, shown)
	}
	pl.y, pl.x = newAxis(ym.title, p.Log, y, ym.label), newAxis(xm.title, logX, x, xm.label)
	if isShare(p.Column) {
		pl.y.keep(fraction)
	}
	if p.X == "iteration" {
		pl.x.keep(wholeNumber)
	}
	pl.axes()
	for i := len(c.Curves) - 1; i >= 0; i-- { // the first is drawn last, on top
		if cu := &c.Curves[i]; p.Group == "" || cu.Group == p.Group {
			pl.band(cu, p, logX, strings.Replace(c.style(i), "c", "b", 1))
			for k := range cu.Runs {
				if c.Raw {
					pl.path(&cu.Runs[k], p, logX, strings.Replace(c.style(i), "c", "r", 1))
				}
			}
			pl.overlay(cu, p, logX, c.style(i), ym)
		}
	}
	return raised(pl.drawing, shown)
}

// include extends the axes to a curve, the upper edge of its band and, on a linear axis, the lower
// one, and to its runs if they are drawn.
func (c *Comparison) include(cu *Curve, p *Panel, logX bool, x, y *extent) {
	spread := cu.Spread[p.Column]
	eachRow(cu, p, logX, func(r int, px, py float64) {
		x.include(px)
		y.include(py)
		if spread == nil {
			return
		}
		low, high := deviations(p.Column, py, spread[r])
		y.include(high)
		if !p.Log {
			y.include(low)
		}
	})
	for k := range cu.Runs {
		if c.Raw {
			c.include(&cu.Runs[k], p, logX, x, y)
		}
	}
}

// raised moves a chart up by the height of the legend and adds a title.
func raised(d *drawing, title string) *drawing {
	out := &drawing{w: d.w, h: d.h - raise, alt: d.alt}
	out.put(d, 0, -raise)
	out.text("v-key", d.w/2, plotTop-8-raise, middle, title)
	return out
}

func (c *Comparison) curvesOf(p *Panel) []*Curve {
	var out []*Curve
	for i := range c.Curves {
		if p.Group == "" || c.Curves[i].Group == p.Group {
			out = append(out, &c.Curves[i])
		}
	}
	return out
}

// DropEmpty removes the panels without data, such as panels of a metric that no run measured. It
// keeps at least one panel.
func (c *Comparison) DropEmpty() {
	all := c.Panels
	c.Panels = slices.DeleteFunc(slices.Clone(all), func(p Panel) bool { return !c.shows(&p) })
	if len(c.Panels) == 0 && len(all) > 0 {
		c.Panels = all[:1]
	}
}

// shows reports whether a panel has data to draw.
func (c *Comparison) shows(p *Panel) bool {
	some := false
	for _, cu := range c.curvesOf(p) {
		eachPoint(cu, p, p.logX(), func(float64, float64) { some = true })
	}
	return some
}

// eachPoint calls visit for each point of a curve that the axes can show.
func eachPoint(cu *Curve, p *Panel, logX bool, visit func(x, y float64)) {
	eachRow(cu, p, logX, func(_ int, x, y float64) { visit(x, y) })
}

// eachRow is eachPoint with the number of the evaluation.
func eachRow(cu *Curve, p *Panel, logX bool, visit func(row int, x, y float64)) {
	ax, ay := axis{log: logX}, axis{log: p.Log}
	xs, ys := cu.Columns[p.X], cu.Columns[p.Column]
	for r := range min(len(xs), len(ys)) {
		if finite(xs[r]) && finite(ys[r]) && ax.shows(xs[r]) && ay.shows(ys[r]) {
			visit(r, xs[r], ys[r])
		}
	}
}

// overlay draws one curve of a panel, and says where it ends.
func (p *plot) overlay(cu *Curve, panel *Panel, logX bool, style string, m measure) {
	if last := p.path(cu, panel, logX, style); finite(last) {
		p.alt += fmt.Sprintf(" %s ends at %s.", cu.Name, m.value(last))
	}
}

// path draws the line of a curve and returns its last value, NaN if it has none.
func (p *plot) path(cu *Curve, panel *Panel, logX bool, style string) (last float64) {
	var at []point
	last = math.NaN()
	eachPoint(cu, panel, logX, func(x, y float64) {
		px, py := p.project(x, y)
		at, last = append(at, point{px, py}), y
	})
	switch len(at) {
	case 0:
	case 1:
		p.line(style, point{at[0].x - 3, at[0].y}, point{at[0].x + 3, at[0].y})
	default:
		p.line(style, at...)
	}
	return last
}
