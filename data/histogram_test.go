package data

import (
	"fmt"
	"math"
	"testing"
)

func TestHistogramCounts(t *testing.T) {
	counts := Histogram([]int32{2, 0, 2, 1, 1}, 3, [][]int32{{0, 1, 2}, {}, {4}})
	if got := fmt.Sprint(counts); got != "[[1 0 2] [0 0 0] [0 1 0]]" {
		t.Errorf("counts %s", got)
	}
	if got, want := Skew(counts), (2.0/3+1)/2; math.Abs(got-want) > 1e-12 {
		t.Errorf("skew %v, want %v", got, want)
	}
	if got := Skew(nil); got != 0 {
		t.Errorf("skew of nothing %v, want 0", got)
	}
}

func TestHistogramPanics(t *testing.T) {
	mustPanic(t, "an example without label", func() { Histogram([]int32{0}, 1, [][]int32{{1}}) })
	mustPanic(t, "a label outside", func() { Histogram([]int32{1}, 1, [][]int32{{0}}) })
}
