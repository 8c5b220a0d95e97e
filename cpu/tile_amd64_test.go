//go:build !noasm

package cpu

import "fspda/cpu/isa"

import (
	"fmt"
	"testing"
)

// Every micro-kernel adds the products of all runs, wherever its halves lie, and writes its own
// part of C only.
func TestTileRunsAndHalves(t *testing.T) {
	const ars, acs, ajump, agap, brs, bjump, bgap, ldc, far = 11, 2, 5, -7, 37, 3, 9, 41, 1200
	for _, i := range isa.Available() {
		s := setOf(i)
		if s == nil {
			continue
		}
		for rows := range len(s.tiles) {
			for vectors := range 2 {
				for _, runs := range []int{1, 2, 5} {
					rows, k, groups := rows+1, 1+(rows+runs)%4, rows%4
					last := 1 + (rows*3+runs)%s.lanes
					a, b, c := noise("a", 2*far), noise("b", 3*far), noise("c", 3*far)
					args := tileArgs{a: &a[1], a2: &a[far], ars: 4 * ars, acs: 4 * acs, b: &b[2], brs: 4 * brs, k: k,
						runs: runs, groups: groups, ajump: 4 * ajump,
						bjump: 4 * bjump, agap: 4 * agap, bgap: 4 * bgap, c: &c[far], c2: &c[3], ldc: 4 * ldc, last: last, alpha: -0.5, beta: 1}
					want := append([]float32{}, c...)
					for r := range rows {
						fromA, toC := 1+r*ars, far+r*ldc
						if half := (rows + 1) / 2; r >= half {
							fromA, toC = far+(r-half)*ars, 3+(r-half)*ldc
						}
						for j := range vectors*s.lanes + last {
							var sum float64
							for p := range max(1, groups) * runs * k {
								x, y := a[fromA+p*acs+p/k*ajump+p/k/runs*agap], b[2+p*brs+p/k*bjump+p/k/runs*bgap+j]
								sum = fused(float64(x), float64(y), sum)
							}
							want[toC+j] = float32(fused(-0.5, sum, float64(want[toC+j])))
						}
					}
					s.tiles[rows-1][vectors](&args)
					sameWords(t, fmt.Sprintf("%s, %d×%d, %d groups of %d runs of %d", i, rows,
						vectors*s.lanes+last, groups, runs, k), c, want)
				}
			}
		}
	}
}
