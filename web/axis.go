package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"fspda/internal/units"
)

// axis maps values to positions and holds the tick marks.
type axis struct {
	title    string
	log      bool
	min, max float64 // ends of the axis, not of the data; 0 < min if log; min < max
	ticks    []tick
}

// tick is a mark on an axis. Minor ticks have no label and a fainter grid line.
type tick struct {
	at    float64
	label string
}

// at returns the relative position of v: 0 at min, 1 at max.
func (a *axis) at(v float64) float64 {
	if a.log {
		return (math.Log(v) - math.Log(a.min)) / (math.Log(a.max) - math.Log(a.min))
	}
	return (v - a.min) / (a.max - a.min)
}

// shows reports whether the axis can represent v.
func (a *axis) shows(v float64) bool { return math.Abs(v) <= largest && (!a.log || v >= smallest) }

// smallest and largest bound the values of an axis, so that its margins stay finite.
const (
	smallest = 1e-290
	largest  = 1e290
)

// linearAxis covers lo to hi with a margin of 4 % at each end, except at a bound of 0. It requires
// lo ≤ hi and |lo|, |hi| ≤ largest.
func linearAxis(title string, lo, hi float64, label func(v, step float64) string) axis {
	if hi-lo <= 1e-9*math.Max(math.Abs(lo), math.Abs(hi)) { // centre a constant curve
		d := cmp.Or(math.Abs(lo)/10, 1)
		lo, hi = lo-d, hi+d
	} else {
		margin := (hi - lo) * 0.04
		if lo != 0 {
			lo -= margin
		}
		hi += margin
	}
	a := axis{title: title, min: lo, max: hi}
	step := niceStep((hi - lo) / 6)
	for i := math.Ceil(lo / step); i <= math.Floor(hi/step) && len(a.ticks) < 20; i++ {
		v := i * step
		if v == 0 {
			v = 0 // not -0
		}
		a.ticks = append(a.ticks, tick{v, label(v, step)})
	}
	return a
}

// niceStep returns the least m·10^k ≥ s with m in {1, 2, 5}.
func niceStep(s float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(s)))
	for _, m := range []float64{1, 2, 5} {
		if m*p >= s*(1-1e-9) {
			return m * p
		}
	}
	return 10 * p
}

// logAxis covers lo to hi, both of which it must be able to show, with a margin of 4 %. It labels
// decades; if fewer than three lie inside, also 2 and 5 of each decade; and if that gives fewer
// than three ticks, round numbers as on a linear axis.
func logAxis(title string, lo, hi float64, label func(v, step float64) string) axis {
	span := math.Log10(hi) - math.Log10(lo)
	if span < 1e-6 { // centre a constant curve
		lo, hi = lo/2, hi*2
	} else {
		margin := math.Pow(10, 0.04*span)
		lo, hi = lo/margin, hi*margin
	}
	a := axis{title: title, log: true, min: lo, max: hi}
	first, last := int(math.Ceil(math.Log10(lo)-1e-9)), int(math.Floor(math.Log10(hi)+1e-9))
	if decades := last - first + 1; decades >= 3 {
		a.decades(first, last, int(math.Max(1, niceStep(float64(decades)/7))), label)
		return a
	}
	for e := first - 1; e <= last; e++ {
		for _, m := range []float64{1, 2, 5} {
			a.mark(m*math.Pow(10, float64(e)), label)
		}
	}
	if len(a.ticks) < 3 {
		a.ticks = linearAxis("", lo, hi, label).ticks
		a.keep(func(v float64) bool { return v >= lo && v <= hi })
	}
	return a
}

// decades labels every step-th power of ten and, on short axes, adds minor ticks between them.
func (a *axis) decades(first, last, step int, label func(v, step float64) string) {
	for e := first - 1; e <= last; e++ {
		p := math.Pow(10, float64(e))
		if e%step == 0 {
			a.mark(p, label)
		} else if last-first < 20 {
			a.mark(p, nil)
		}
		for m := 2.0; m < 10 && last-first < 5; m++ {
			a.mark(m*p, nil)
		}
	}
}

// mark adds a tick if it lies on the axis. A nil label makes it minor.
func (a *axis) mark(v float64, label func(v, step float64) string) {
	if v < a.min || v > a.max {
		return
	}
	t := tick{at: v}
	if label != nil {
		t.label = label(v, 0)
	}
	a.ticks = append(a.ticks, t)
}

// keep drops the ticks that do not satisfy valid, such as fractional iterations.
func (a *axis) keep(valid func(v float64) bool) {
	a.ticks = slices.DeleteFunc(a.ticks, func(t tick) bool { return !valid(t.at) })
}

func wholeNumber(v float64) bool { return v >= 0 && v == math.Floor(v) }

func fraction(v float64) bool { return v >= 0 && v <= 1 }

// decimals is the number of decimal places that multiples of step need.
func decimals(step float64) int {
	return int(math.Min(9, math.Max(0, math.Ceil(-math.Log10(step)-1e-9))))
}

// Tick labels. step is the distance between ticks on a linear axis, and 0 on a log axis.

func plainLabel(v, step float64) string {
	a := math.Abs(v)
	switch {
	case v == 0 && step < 1e-4: // zero needs none of the digits of its neighbours
		return "0"
	case step == 0 && isPower(v) && (a < 0.01 || a > 1000):
		return "1e" + units.Minus(strconv.Itoa(int(math.Round(math.Log10(v)))))
	case step == 0 || a != 0 && (a >= 1e5 || step < 1e-4):
		return units.Significant(v, 4)
	}
	return units.Minus(strconv.FormatFloat(v, 'f', decimals(step), 64))
}

func isPower(v float64) bool {
	l := math.Log10(v)
	return v > 0 && math.Abs(l-math.Round(l)) < 1e-9
}

func percentLabel(v, step float64) string {
	return units.Minus(strconv.FormatFloat(100*v, 'f', decimals(100*step), 64)) + " %"
}

func countLabel(v, step float64) string {
	if step >= 1000 {
		return digits(v, step, "")
	}
	if v == math.Floor(v) {
		step = 1
	}
	return units.Minus(strconv.FormatFloat(v, 'f', decimals(step), 64))
}

func bitLabel(v, step float64) string { return digits(v, step, "bit") }

// digits is si with enough significant digits to tell neighbouring ticks apart.
func digits(v, step float64, unit string) string {
	if v == 0 || step == 0 {
		return units.SI(v, unit)
	}
	p := 0
	for a := math.Abs(v); p+1 < len(units.Prefixes) && a >= 1000*(1-1e-9); a /= 1000 {
		p++
	}
	scale := math.Pow(1000, float64(p))
	s := units.Minus(strconv.FormatFloat(v/scale, 'f', decimals(step/scale), 64))
	if unit == "" {
		return s + units.Prefixes[p]
	}
	return s + " " + units.Prefixes[p] + unit
}
