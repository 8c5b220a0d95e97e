package cpu

import (
	"fmt"
	"slices"
	"testing"

	"fspda/device"
)

// An image of fewer rows than there are threads leaves some of them without work, and changes no
// bits.
func TestConvOfFewRows(t *testing.T) {
	for _, dims := range [][]int{{1, 1, 1, 1024, 4096, 1, 1, 1, 0}, {1, 2, 2, 512, 512, 3, 3, 1, 1}} {
		for _, k := range directions {
			alone := runCode(t, New(), codeOf(k, dims))
			d := New(Threads(5))
			if got := runCode(t, d, codeOf(k, dims)); !slices.Equal(got, alone) {
				t.Error(fmt.Sprint(device.Kernel(k), dims), "has other bits on five threads")
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
