package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fspda/train"
)

// Metric is a number by which runs are compared: a column of metrics.csv, or the cost to reach an
// accuracy of the mean model, as in bits_to(0.9), time_to(0.9) and iterations_to(0.9).
type Metric struct {
	Name string

	column int     // number of the column
	reach  string  // bits, time or iterations; empty: a column
	level  float64 // the accuracy
}

// reaches lists the costs of reaching an accuracy.
var reaches = []string{"bits", "time", "iterations"}

// ParseMetric reads the name of a metric.
func ParseMetric(name string) (Metric, error) {
	m := Metric{Name: name, column: slices.Index(train.Columns(), name)}
	if m.column >= 0 {
		return m, nil
	}
	what, arg, isReach := strings.Cut(strings.ReplaceAll(name, " ", ""), "_to(")
	if !isReach || !slices.Contains(reaches, what) {
		return m, unknownName("metric", name, slices.Concat([]string{"bits_to(0.9)", "time_to(0.9)",
			"iterations_to(0.9)"}, train.Columns()))
	}
	level, err := strconv.ParseFloat(strings.TrimSuffix(arg, ")"), 64)
	if err != nil || !strings.HasSuffix(arg, ")") || !(level > 0 && level <= 1) {
		return m, &train.ConfigError{Key: "metric", Got: name,
			Want: fmt.Sprintf("expected an accuracy above 0 and at most 1, as in %s_to(0.9)", what)}
	}
	m.reach, m.level, m.Name = what, level, fmt.Sprintf("%s_to(%g)", what, level)
	return m, nil
}

// best returns max or min, whichever is better.
func (m Metric) best() string {
	if m.reach == "" && (strings.HasPrefix(m.Name, "test_acc") || strings.HasPrefix(m.Name, "test_top5")) {
		return "max"
	}
	return "min"
}

// Reach is the point at which a run reached an accuracy.
type Reach struct {
	// At is interpolated linearly between the evaluation before and the one that reached it; NaN: not
	// reached
	At         float64
	Resolution float64 // distance of these two evaluations; 0 if the first one reached it
	Row        int     // the evaluation that reached it; -1: none
}

// reach returns the point on the axis x at which an accuracy first was at least level. An accuracy
// before that is not a number leaves At at the evaluation itself.
func reach(rows []train.Row, level float64, accuracy func(train.Row) train.Num, x func(train.Row) float64) Reach {
	for k, r := range rows {
		a := float64(accuracy(r))
		if !(a >= level) {
			continue
		}
		end := Reach{At: x(r), Row: k}
		if k == 0 {
			return end
		}
		before, from := float64(accuracy(rows[k-1])), x(rows[k-1])
		end.Resolution = end.At - from
		if !math.IsNaN(before) {
			end.At = from + (level-before)/(a-before)*end.Resolution
		}
		return end
	}
	return Reach{At: math.NaN(), Resolution: math.NaN(), Row: -1}
}

// score is a metric of one run.
type score struct {
	value      float64 // NaN: there is none
	resolution float64 // distance between two possible values of the bits or time to an accuracy
	row        int     // the evaluation that it was taken from; -1: none
	accuracy   float64 // last accuracy of the mean model, for runs that have not reached the level
}

// of returns the metric of a run at the last of rows; bits and time say how these are counted.
func (m Metric) of(rows []train.Row, bits, time func(train.Row) float64) score {
	s := score{value: math.NaN(), resolution: math.NaN(), row: -1, accuracy: math.NaN()}
	if len(rows) == 0 {
		return s
	}
	last := rows[len(rows)-1]
	s.accuracy = float64(last.TestAccAvg)
	if m.reach == "" {
		s.row, s.value = len(rows)-1, last.Values()[m.column]
		return s
	}
	x := map[string]func(train.Row) float64{"bits": bits, "time": time,
		"iterations": func(r train.Row) float64 { return float64(r.Iteration) }}[m.reach]
	at := reach(rows, m.level, meanAccuracy, x)
	s.value, s.resolution, s.row = at.At, at.Resolution, at.Row
	return s
}

// clock returns the clock of a run and its name: virtual time where it has one, else wall-clock
// time.
func (o *Outcome) clock() (name string, time func(train.Row) float64) {
	if o.Last().Time > 0 {
		return "virtual_time", func(r train.Row) float64 { return float64(r.Time) }
	}
	return "wall_s", func(r train.Row) float64 { return float64(r.WallS) }
}
