package cpu

import "testing"

// Shares cover everything once and differ by one at most.
func TestShare(t *testing.T) {
	for n := 1; n < 60; n++ {
		for all := 1; all <= n; all++ {
			next := 0
			for s := range all {
				first, length := share(s, all, n)
				if first != next || length < n/all || length > n/all+1 {
					t.Fatalf("part %d of %d of %d begins at %d with %d", s, all, n, first, length)
				}
				next += length
			}
			if next != n {
				t.Fatalf("%d parts cover %d of %d", all, next, n)
			}
		}
	}
}
