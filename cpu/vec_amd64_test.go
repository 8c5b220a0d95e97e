//go:build !noasm

package cpu

import "testing"

// Results that go past the caches are the same, wherever dst begins.
func TestStreamTwins(t *testing.T) {
	for _, c := range streamCases() {
		for _, n := range []int{0, 1, 15, 16, 17, 31, 33, 100, vecBlock + 40} {
			for offset := range 16 {
				vecTwins(t, c, n, offset, 5, 20)
			}
		}
	}
}
