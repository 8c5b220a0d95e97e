package selftest

import (
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
)

// Kernels that a library loads late are no leak; memory that each opening costs is one.
func TestReopen(t *testing.T) {
	for name, c := range map[string]struct {
		lost []int // MB at each opening
		want string
	}{
		"nothing":                {make([]int, 9), ""},
		"loaded at first use":    {[]int{300, 0, 0, 0, 0}, ""},
		"loaded at a later use":  {[]int{20, 0, 64, 0, 2}, ""},
		"taken by another":       {[]int{0, 900, 0, 800, 700}, ""},
		"taken in each of four":  {[]int{0, 2, 2, 2, 2, 2, 0}, ""},
		"two MB of each opening": {slices.Repeat([]int{2}, 17), "each time"},
	} {
		free, opened := 8000, 0
		x := Target{Device: cpu.New(), Precision: "fp32", Small: true,
			Again: func() (device.Device, func() error, error) {
				free -= c.lost[opened]
				opened++
				return cpu.New(), func() error { return nil }, nil
			},
			Free: func() (int, error) { return free << 20, nil }}
		saw, err := x.reopen()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%s), want an error with %q", name, err, saw, c.want)
		}
	}
}

// Memory that another process takes is no memory of vectors; what all three attempts cost is.
func TestForget(t *testing.T) {
	for name, c := range map[string]struct {
		taken []int // MB in each attempt
		want  string
	}{
		"nothing":         {[]int{0}, ""},
		"of another":      {[]int{900, 700, 0}, ""},
		"of each attempt": {[]int{100, 100, 100}, "occupy"},
	} {
		free, asked := 8000, 0
		x := Target{Device: cpu.New(), Small: true, Free: func() (int, error) {
			if asked++; asked%2 == 0 {
				free -= c.taken[asked/2-1]
			}
			return free << 20, nil
		}}
		saw, err := x.forget()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v (%s), want an error with %q", name, err, saw, c.want)
		}
	}
}
