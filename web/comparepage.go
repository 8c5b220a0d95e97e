package web

import (
	_ "embed" // the page
	"encoding/json"
	"fmt"
	"html/template"
	"slices"
)

//go:embed compare.html.tmpl
var comparisonText string

//go:embed compare.js
var comparisonScript string

var comparisonPage = template.Must(template.New("comparison").Parse(comparisonText))

// comparisonData is the input of the script of the page.
type comparisonData struct {
	Names  map[string]string `json:"names"` // titles of columns
	Xs     []string          `json:"xs"`    // columns that can be the x axis
	Table  []string          `json:"table"` // columns of the table
	Panels []Panel           `json:"panels"`
	Curves []curveData       `json:"curves"`
	Raw    bool              `json:"raw"` // show the single runs of means at first
}

type curveData struct {
	Name    string                `json:"name"`
	Run     string                `json:"run,omitempty"`
	Group   string                `json:"group"`
	Style   string                `json:"style"`
	Columns map[string][]*float64 `json:"columns"` // null where a number is not finite

	// of a mean over seeds
	Spread map[string][]*float64   `json:"spread,omitempty"`
	Runs   []map[string][]*float64 `json:"runs,omitempty"` // columns of each run
}

// WritePage writes the comparison as one self-contained HTML page on which curves can be switched
// on and off, axes chosen and values read.
func (c *Comparison) WritePage(path string) error {
	text, err := json.Marshal(c.data()) // escapes <, > and &, so that no text can end the element that holds it
	if err != nil {
		return fmt.Errorf("web: encode comparison %s: %w", path, err)
	}
	view := struct {
		Title   string
		Caption []string
		Tables  []PageTable
		CSS     template.CSS
		Data    template.JS
		Script  template.JS
	}{clean(c.Title), c.Caption, c.Tables, template.CSS(paletteCSS() + stylesCSS(pageColour)), template.JS(text),
		template.JS(comparisonScript)}
	return publishPage(comparisonPage, view, path)
}

// data returns the known columns that some curve has.
func (c *Comparison) data() *comparisonData {
	xColumns := []string{"iteration", "epoch", "virtual_time"} // columns of bits follow
	d := &comparisonData{Names: map[string]string{}, Panels: c.Panels, Raw: c.Raw}
	for _, m := range measures {
		if !c.has(m.column) {
			continue
		}
		d.Names[m.column] = c.measureOf(m.column).title
		if isBits(m.column) || slices.Contains(xColumns, m.column) {
			d.Xs = append(d.Xs, m.column)
		} else {
			d.Table = append(d.Table, m.column)
		}
	}
	for _, p := range d.Panels {
		d.Names[p.Column], d.Names[p.X] = c.measureOf(p.Column).title, c.measureOf(p.X).title
	}
	for i, cu := range c.Curves {
		out := curveData{Name: clean(cu.Name), Run: clean(cu.Run), Group: cu.Group, Style: c.style(i),
			Columns: d.pick(cu.Columns)}
		if cu.Spread != nil {
			out.Spread = d.pick(cu.Spread)
		}
		for _, r := range cu.Runs {
			out.Runs = append(out.Runs, d.pick(r.Columns))
		}
		d.Curves = append(d.Curves, out)
	}
	return d
}

// pick returns the named columns, with null for numbers that are not finite.
func (d *comparisonData) pick(columns map[string][]float64) map[string][]*float64 {
	out := map[string][]*float64{}
	for name := range d.Names {
		for _, v := range columns[name] {
			out[name] = append(out[name], pointer(v))
		}
	}
	return out
}

// has reports whether some curve has a number in a column.
func (c *Comparison) has(column string) bool {
	for _, cu := range c.Curves {
		for _, v := range cu.Columns[column] {
			if finite(v) && (v != 0 || column != "virtual_time") { // runs without a simulated network write 0
				return true
			}
		}
	}
	return false
}
