package web

import (
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// labels returns the labels of the major ticks.
func labels(a axis) []string {
	var l []string
	for _, t := range a.ticks {
		if t.label != "" {
			l = append(l, t.label)
		}
	}
	return l
}

func TestAxisLabels(t *testing.T) {
	whole := linearAxis("", 0, 0, countLabel)
	whole.keep(wholeNumber)
	share := linearAxis("", 0.5, 1, percentLabel)
	share.keep(fraction)
	for name, c := range map[string]struct {
		axis axis
		want []string
	}{
		"iterations":   {linearAxis("", 0, 20000, countLabel), []string{"0", "5k", "10k", "15k", "20k"}},
		"few":          {linearAxis("", 0, 12, countLabel), []string{"0", "5", "10"}},
		"only iter. 0": {whole, []string{"0", "1"}},
		"millions":     {linearAxis("", 0, 3e6, countLabel), []string{"0", "1M", "2M", "3M"}},
		"half steps":   {linearAxis("", 0, 2500, countLabel), []string{"0", "500", "1000", "1500", "2000", "2500"}},
		"accuracy":     {share, []string{"50 %", "60 %", "70 %", "80 %", "90 %", "100 %"}},
		"fine accuracy": {linearAxis("", 0.97, 0.975, percentLabel), []string{"97.0 %", "97.1 %", "97.2 %", "97.3 %",
			"97.4 %", "97.5 %"}},
		"bits":         {logAxis("", 1e6, 1e9, bitLabel), []string{"1 Mbit", "10 Mbit", "100 Mbit", "1 Gbit"}},
		"bits, narrow": {logAxis("", 1e8, 9e8, bitLabel), []string{"100 Mbit", "200 Mbit", "500 Mbit"}},
		"bits, point":  {logAxis("", 5e9, 5e9, bitLabel), []string{"4 Gbit", "6 Gbit", "8 Gbit", "10 Gbit"}},
		"small":        {logAxis("", 1e-5, 1, plainLabel), []string{"1e−5", "1e−4", "1e−3", "0.01", "0.1", "1"}},
		"many decades": {logAxis("", 1e-30, 1e5, plainLabel), []string{"1e−30", "1e−20", "1e−10", "1"}},
		"loss":         {linearAxis("", 0.5, 2.3, plainLabel), []string{"0.5", "1.0", "1.5", "2.0"}},
		"negative":     {linearAxis("", -2, 2, plainLabel), []string{"−2", "−1", "0", "1", "2"}},
		"tiny steps":   {linearAxis("", 0, 5e-9, plainLabel), []string{"0", "1e−9", "2e−9", "3e−9", "4e−9", "5e−9"}},
		"huge":         {linearAxis("", 0, 3e8, plainLabel), []string{"0", "1e8", "2e8", "3e8"}},
		"all zero":     {linearAxis("", 0, 0, plainLabel), []string{"−1.0", "−0.5", "0.0", "0.5", "1.0"}},
	} {
		if got := labels(c.axis); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// For random data, an axis covers them, its ticks lie on it in order, and there are 2 to 20 labels.
func TestAxisCovers(t *testing.T) {
	s := rng.New(1, "axis")
	for range 3000 {
		lo := math.Pow(10, 600*s.Float64()-300)
		hi := lo * math.Pow(10, s.Exp())
		if s.IntN(4) == 0 {
			hi = lo
		}
		if hi > largest {
			continue
		}
		checkAxis(t, linearAxis("", lo, hi, plainLabel), lo, hi)
		checkAxis(t, linearAxis("", -hi, -lo, percentLabel), -hi, -lo)
		checkAxis(t, linearAxis("", -lo, hi, countLabel), -lo, hi)
		if lo >= smallest {
			checkAxis(t, logAxis("", lo, hi, bitLabel), lo, hi)
		}
	}
}

func checkAxis(t *testing.T, a axis, lo, hi float64) {
	t.Helper()
	if a.min > lo || a.max < hi || !(a.min < a.max) || !finite(a.at(lo)) || a.at(hi) < a.at(lo) {
		t.Errorf("%g to %g: axis from %g to %g", lo, hi, a.min, a.max)
	}
	if n := len(labels(a)); n < 2 || n > 20 {
		t.Errorf("%g to %g: %d labels %q", lo, hi, n, labels(a))
	}
	for i, k := range a.ticks {
		if k.at < a.min || k.at > a.max || i > 0 && k.at < a.ticks[i-1].at {
			t.Errorf("%g to %g: tick %d at %g, axis from %g to %g", lo, hi, i, k.at, a.min, a.max)
		}
	}
}

func TestAxisShows(t *testing.T) {
	lin, log := axis{}, axis{log: true}
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} {
		if lin.shows(v) || log.shows(v) {
			t.Errorf("an axis shows %g", v)
		}
	}
	if !lin.shows(-1) || !lin.shows(0) || log.shows(0) || log.shows(-1) || log.shows(1e-320) || !log.shows(1e-9) {
		t.Error("shows is wrong for a finite value")
	}
}
