package kernel

import "testing"

// The parts cover everything once, and their lengths differ by one at most.
func TestShare(t *testing.T) {
	for n := 1; n < 60; n++ {
		for all := 1; all <= n; all++ {
			next := 0
			for s := range all {
				first, length := Split(s, all, n)
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

func TestPortion(t *testing.T) {
	for _, unit := range []int{1, 32} {
		for n := range 200 {
			for of := 1; of < 9; of++ {
				next := 0
				for part := range of {
					from, to := SplitUnits(part, of, n, unit)
					if from != next || to < from || from%unit != 0 && from != n {
						t.Fatalf("part %d of %d of %d in units of %d is %d to %d, want it to begin at %d", part, of, n,
							unit, from, to, next)
					}
					next = to
				}
				if next != n {
					t.Fatalf("%d parts cover %d of %d", of, next, n)
				}
			}
		}
	}
}
