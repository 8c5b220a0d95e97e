package selftest

import (
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
		"two MB of each opening": {[]int{2, 2, 2, 2, 2}, "each time"},
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
