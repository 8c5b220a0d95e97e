package theory

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Slope is a fitted exponent: y is proportional to x^Value.
type Slope struct {
	Value float64 // mean over the seeds
	Half  float64 // half width of the 95 % confidence interval, by Student's t over the seeds
}

// Contains reports whether v is in the confidence interval.
func (s Slope) Contains(v float64) bool { return math.Abs(v-s.Value) <= s.Half+1e-9 }

// FitSlope fits a line to log y against log x by least squares, for each seed by itself.
// ys[seed][k] belongs to x[k]. Values that are not finite are left out. There must be two seeds at
// least.
func FitSlope(x []float64, ys [][]float64) Slope {
	var slopes []float64
	for _, y := range ys {
		var lx, ly []float64
		for k, v := range y {
			if v > 0 && !math.IsInf(v, 0) {
				lx, ly = append(lx, math.Log(x[k])), append(ly, math.Log(v))
			}
		}
		_, slope := stat.LinearRegression(lx, ly, nil, false)
		slopes = append(slopes, slope)
	}
	mean, std := stat.MeanStdDev(slopes, nil)
	n := float64(len(slopes))
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	return Slope{mean, t * std / math.Sqrt(n)}
}
