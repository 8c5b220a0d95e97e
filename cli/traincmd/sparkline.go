package traincmd

import (
	"fmt"
	"math"
	"strings"

	"fspda/cli/command"
	"fspda/train"
)

// sparks are the heights of a sparkline, from low to high.
var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkline draws values in at most width cells; if there are more values, a cell shows the mean of
// several. Values that are not finite, or not above zero on a logarithmic scale, are gaps.
func sparkline(values []float64, width int, log bool) string {
	cells := cellMeans(values, width, log)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, v := range cells {
		if !math.IsNaN(v) {
			lo, hi = math.Min(lo, v), math.Max(hi, v)
		}
	}
	var b strings.Builder
	for _, v := range cells {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case hi-lo <= 1e-12*math.Abs(hi):
			b.WriteRune(sparks[len(sparks)/2])
		default:
			b.WriteRune(sparks[int(math.Min(float64(len(sparks)-1), (v-lo)/(hi-lo)*float64(len(sparks))))])
		}
	}
	return b.String()
}

// cellMeans returns the mean of the values of each cell, NaN where a cell has none.
func cellMeans(values []float64, width int, log bool) []float64 {
	n := min(width, len(values))
	cells := make([]float64, n)
	for c := range cells {
		sum, count := 0.0, 0
		for _, v := range values[c*len(values)/n : (c+1)*len(values)/n] {
			if log {
				v = math.Log(v)
			}
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				sum += v
				count++
			}
		}
		cells[c] = sum / float64(count) // NaN if count is 0
	}
	return cells
}

// curves holds the values of a run that are drawn as sparklines.
type curves struct{ loss, accuracy, consensus []float64 }

func (c *curves) add(r train.Row) {
	c.loss = append(c.loss, float64(r.TrainLossAvg))
	c.accuracy = append(c.accuracy, float64(r.TestAccAvg))
	c.consensus = append(c.consensus, float64(r.Consensus))
}

// lines draws the curves in the width of a terminal, each with its latest value. It draws nothing
// until there are two points.
func (c *curves) lines(width int) []string {
	const labels = 28 // cells for name and value
	n := len(c.loss)
	if n < 2 || width < labels+10 {
		return nil
	}
	cells := min(width-labels, 72)
	return []string{
		fmt.Sprintf(" %-10s %s %s", "loss", sparkline(c.loss, cells, true), command.Number(train.Num(c.loss[n-1]))),
		fmt.Sprintf(" %-10s %s %.2f %%", "accuracy", sparkline(c.accuracy, cells, false), 100*c.accuracy[n-1]),
		fmt.Sprintf(" %-10s %s %s", "consensus", sparkline(c.consensus, cells, true),
			command.Number(train.Num(c.consensus[n-1]))),
	}
}
