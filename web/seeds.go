package web

import (
	"math"
	"strings"
)

// MeanCurve returns the curve of a setting that was run with several seeds: the means of the runs'
// columns, evaluation by evaluation, with their sample standard deviations as its Spread. It ends
// where the shortest run ends. A column that some run lacks, or a number that is not finite in some
// run, is not a number. A single run is returned as it is.
func MeanCurve(name, group string, runs []Curve) Curve {
	if len(runs) == 1 {
		c := runs[0]
		c.Name, c.Group = name, group
		return c
	}
	c := Curve{Name: name, Group: group, Columns: map[string][]float64{}, Spread: map[string][]float64{}, Runs: runs}
	for column, first := range runs[0].Columns {
		rows := len(first)
		for _, r := range runs {
			rows = min(rows, len(r.Columns[column]))
		}
		mean, spread := make([]float64, rows), make([]float64, rows)
		for i := range rows {
			for _, r := range runs {
				mean[i] += r.Columns[column][i] / float64(len(runs))
			}
			for _, r := range runs {
				spread[i] += (r.Columns[column][i] - mean[i]) * (r.Columns[column][i] - mean[i])
			}
			spread[i] = math.Sqrt(spread[i] / float64(len(runs)-1))
		}
		c.Columns[column], c.Spread[column] = mean, spread
	}
	return c
}

// deviations returns a mean minus and plus a standard deviation. Accuracies stay between 0 and 1.
func deviations(column string, mean, spread float64) (low, high float64) {
	low, high = mean-spread, mean+spread
	if isShare(column) {
		low, high = math.Max(low, 0), math.Min(high, 1)
	}
	return low, high
}

// isShare reports whether the numbers of a column lie between 0 and 1.
func isShare(column string) bool {
	return strings.HasPrefix(column, "test_acc") || column == "test_top5_avg"
}

// band shades the mean plus and minus the spread of a curve, within the plot.
func (p *plot) band(cu *Curve, panel *Panel, logX bool, style string) {
	spread := cu.Spread[panel.Column]
	if spread == nil {
		return
	}
	var lower, upper []point
	eachRow(cu, panel, logX, func(r int, x, y float64) {
		low, high := deviations(panel.Column, y, spread[r])
		px, top := p.project(x, math.Min(high, p.y.max))
		bottom := p.bottom()
		if p.y.shows(low) {
			_, bottom = p.project(x, low)
		}
		lower, upper = append(lower, point{px, math.Min(bottom, p.bottom())}), append(upper, point{px, top})
	})
	if len(lower) < 2 {
		return
	}
	for i := len(lower) - 1; i >= 0; i-- {
		upper = append(upper, lower[i])
	}
	p.add(mark{kind: polygon, style: style, at: upper})
}
