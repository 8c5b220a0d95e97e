package dist

import (
	"slices"
	"testing"
)

// The exchanges of a cycle have each coordinate once, in another order in the next cycle, the same
// at both ends of an edge, for exchanges in every iteration and at the ends of rounds.
func TestCycleIsAPartition(t *testing.T) {
	for _, d := range []int{1, 3, 40, 37, 1003} {
		for _, run := range []int{2, 3, 10} {
			for _, every := range []int{1, 2, 10} {
				m := Every(mustMask(t, "cycle", 1/float64(run), []int{d}), every)
				if m.Dense() || m.Dim() != d || m.String() != "cycle" {
					t.Fatalf("mask %s of %d, dense %v", m, m.Dim(), m.Dense())
				}
				var orders [2][]uint32
				for c := range orders {
					for k := range run {
						at := (c*run+k)*every + every - 1
						got := m.Draw(nil, at, 2, 5)
						if !slices.Equal(got, m.Draw(nil, at, 5, 2)) || !slices.IsSorted(got) {
							t.Fatalf("iteration %d: %v, and %v at the other end", at, got, m.Draw(nil, at, 5, 2))
						}
						if off := len(got) - m.Len(); off < -1 || off > 1 {
							t.Errorf("%d of %d coordinates, want about %d", len(got), d, m.Len())
						}
						orders[c] = append(orders[c], got...)
					}
					sorted := slices.Sorted(slices.Values(orders[c]))
					if len(sorted) != d || int(sorted[d-1]) != d-1 || len(slices.Compact(sorted)) != d {
						t.Errorf("d %d, density 1/%d, every %d: a cycle has %v", d, run, every, orders[c])
					}
				}
				if d > 30 && slices.Equal(orders[0], orders[1]) {
					t.Errorf("two cycles of %d coordinates are alike", d)
				}
			}
		}
	}
	for _, name := range []string{"cycle", "parts"} {
		if _, err := ParseMask(name, 0.3, []int{10}, 1); err == nil {
			t.Errorf("%s: a density of 0.3 is admitted", name)
		}
		if m := mustMask(t, name, 1, []int{10}); !m.Dense() {
			t.Errorf("%s with density 1 is not dense", name)
		}
	}
}

// The exchanges of parts have adjacent coordinates, the same ones in each cycle, and all together.
func TestPartsInTurn(t *testing.T) {
	for _, d := range []int{2, 10, 1003} {
		for _, run := range []int{2, 3, 10} {
			for _, every := range []int{1, 4} {
				m, next := Every(mustMask(t, "parts", 1/float64(run), []int{d}), every), 0
				for k := range 2 * run {
					got := m.Draw(nil, k*every+every-1, 0, 0)
					if off := len(got) - d/run; off < 0 || off > 1 {
						t.Errorf("part %d of %d has %d coordinates of %d", k, run, len(got), d)
					}
					for _, c := range got {
						if int(c) != next%d {
							t.Fatalf("d %d, %d parts, every %d: exchange %d has %v", d, run, every, k, got)
						}
						next++
					}
				}
				if next != 2*d || m.Dense() || m.String() != "parts" {
					t.Errorf("two cycles have %d of %d coordinates, dense %v, %s", next, d, m.Dense(), m)
				}
			}
		}
	}
}
