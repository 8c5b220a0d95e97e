package data

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// tiny makes a set of n training and n test examples of 2×3 pixels and 4 classes, all different.
func tiny(t testing.TB, n int) *Set {
	t.Helper()
	make := func(salt int) Examples {
		var e Examples
		for i := range n {
			for j := range 6 {
				e.Pixels = append(e.Pixels, uint8(i*37+j*11+salt))
			}
			e.Labels = append(e.Labels, int32(i%4))
		}
		return e
	}
	s, err := New("tiny", []int{2, 3}, 4, 0.25, 0.5, make(0), make(5))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewKeepsWhatItGets(t *testing.T) {
	s := tiny(t, 7)
	if s.Features() != 6 || s.Train.Len() != 7 || s.Test.Len() != 7 || s.Test.Features() != 6 ||
		!slices.Equal(s.Shape, []int{2, 3}) {
		t.Errorf("got %d features, %d and %d examples, shape %v", s.Features(), s.Train.Len(), s.Test.Len(), s.Shape)
	}
}

func TestNewRefuses(t *testing.T) {
	ok := Examples{Pixels: make([]uint8, 12), Labels: []int32{0, 1}}
	for name, c := range map[string]struct {
		shape     []int
		classes   int
		mean, std float32
		train     Examples
		want      string
	}{
		"shape":          {[]int{2, 0}, 2, 0, 1, ok, "shape [2 0]"},
		"huge shape":     {[]int{1 << 20, 1 << 20}, 2, 0, 1, ok, "below 2^31"},
		"classes":        {[]int{6}, 0, 0, 1, ok, "0 classes"},
		"std":            {[]int{6}, 2, 0, 0, ok, "positive std"},
		"NaN mean":       {[]int{6}, 2, float32(math.NaN()), 1, ok, "finite mean"},
		"NaN std":        {[]int{6}, 2, 0, float32(math.NaN()), ok, "positive std"},
		"label":          {[]int{6}, 1, 0, 1, ok, "label 1 of example 1, want 0 to 0"},
		"negative label": {[]int{6}, 1, 0, 1, Examples{ok.Pixels, []int32{0, -1}}, "label -1 of example 1"},
		"pixels":         {[]int{6}, 2, 0, 1, Examples{ok.Pixels[:11], ok.Labels}, "11 pixels and 2 labels"},
	} {
		_, err := New("x", c.shape, c.classes, c.mean, c.std, c.train, ok)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := NewChannels("x", []int{2, 3}, 2, make([]float32, 3), []float32{1, 1, 1}, ok, ok); err == nil ||
		!strings.Contains(err.Error(), "3 means and shape [2 3]") {
		t.Errorf("error %v, want one about channels", err)
	}
	if _, err := New("x", []int{6}, 2, 0, 1, ok, Examples{ok.Pixels, []int32{0}}); err == nil ||
		!strings.Contains(err.Error(), "test examples") {
		t.Errorf("error %v, want one about the test examples", err)
	}
}

// The fingerprint depends on every part of the content, but not on the name.
func TestFingerprint(t *testing.T) {
	build := func(name string, shape []int, classes int, mean float32, flip int, label int32) string {
		e := Examples{Pixels: make([]uint8, 12), Labels: []int32{0, label}}
		if flip >= 0 {
			e.Pixels[flip] = 1
		}
		s, err := New(name, shape, classes, mean, 1, e, Examples{})
		if err != nil {
			t.Fatal(err)
		}
		return s.Fingerprint()
	}
	base := build("a", []int{6}, 3, 0, -1, 0)
	if len(base) != 32 || base != build("b", []int{6}, 3, 0, -1, 0) {
		t.Errorf("fingerprint %q is not 32 digits or depends on the name", base)
	}
	for what, other := range map[string]string{
		"shape":   build("a", []int{2, 3}, 3, 0, -1, 0),
		"classes": build("a", []int{6}, 4, 0, -1, 0),
		"mean":    build("a", []int{6}, 3, 0.5, -1, 0),
		"pixel":   build("a", []int{6}, 3, 0, 11, 0),
		"label":   build("a", []int{6}, 3, 0, -1, 2),
	} {
		if other == base {
			t.Errorf("another %s has the same fingerprint", what)
		}
	}
}
