package theory

import (
	"fmt"
	"io"
	"math"
	"strings"

	"gonum.org/v1/gonum/stat"
)

// Header is the first two lines of the table of slopes in Markdown.
const Header = "| study | curve | fitted slope, 95 % interval | the paper's | agrees | where the prediction is from " +
	"|\n|---|---|---|---|---|---|\n"

// Line returns the line of a series in the table of slopes.
func (f Fitted) Line(s Study) string {
	agrees := "yes"
	if !f.Slope.Contains(f.Predicted) {
		agrees = fmt.Sprintf("no, by %.2g", math.Abs(f.Slope.Value-f.Predicted))
	}
	name := strings.ReplaceAll(f.Name, "|", "\\|")
	return fmt.Sprintf("| %s | %s | %s ± %s | %s | %s | %s |\n", s.Name, name, digits(f.Slope.Value),
		digits(f.Slope.Half), digits(f.Predicted), agrees, f.Why)
}

// digits writes a slope with three decimal places.
func digits(v float64) string { return strings.Replace(fmt.Sprintf("%.3f", v), "-0.000", "0.000", 1) }

// Means returns the means of a series over its seeds, without those that are not finite.
func (f Fitted) Means() (x, y []float64) {
	for k := range f.X {
		var ys []float64
		for _, of := range f.Y {
			ys = append(ys, of[k])
		}
		if m := stat.Mean(ys, nil); m > 0 && !math.IsInf(m, 0) {
			x, y = append(x, f.X[k]), append(y, m)
		}
	}
	return x, y
}

// Prediction returns the line of the predicted slope through the first mean.
func (f Fitted) Prediction() (x, y []float64) {
	x, means := f.Means()
	for _, v := range x {
		y = append(y, means[0]*math.Pow(v/x[0], f.Predicted))
	}
	return x, y
}

// Legend names a series with its slope.
func (f Fitted) Legend() string {
	return fmt.Sprintf("%s: slope %s ± %s", f.Name, digits(f.Slope.Value), digits(f.Slope.Half))
}

// WriteCSV writes all measurements: study, series, x, seed, y.
func WriteCSV(w io.Writer, s Study, all []Fitted) error {
	for _, f := range all {
		for seed, ys := range f.Y {
			for k, y := range ys {
				if _, err := fmt.Fprintf(w, "%s,%q,%g,%d,%g\n", s.Name, f.Name, f.X[k], seed+1, y); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
