//go:build !noasm && !fspda_noasm

package vec

import "testing"

// Non-temporal stores give the same results, wherever dst begins.
func TestNonTemporalTwins(t *testing.T) {
	for _, c := range nonTemporalCases() {
		for _, n := range []int{0, 1, 15, 16, 17, 31, 33, 100, vecBlock + 40} {
			for offset := range 16 {
				checkTwins(t, c, n, offset, 5, 20)
			}
		}
	}
}
