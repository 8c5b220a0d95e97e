package tile

import (
	"fmt"
	"testing"

	"fspda/cpu/isa"
	"fspda/internal/testing/kerneltest"
)

// Every micro-kernel adds the products of all runs, wherever its halves and the matrix that beta
// multiplies lie, and writes only its own part of C.
func TestTileRunsAndHalves(t *testing.T) {
	const ars, acs, ajump, agap, brs, bjump, bgap, ldc, far, old = 11, 2, 5, -7, 37, 3, 9, 41, 1200, 3600
	for _, i := range isa.Available() {
		s := SetOf(i)
		if s == nil {
			continue
		}
		for rows := range len(s.Tiles) {
			for vectors := range 2 {
				for _, runs := range []int{1, 2, 5} {
					rows, k, groups := rows+1, 1+(rows+runs)%4, rows%4
					last := 1 + (rows*3+runs)%s.Lanes
					a, b := kerneltest.Noise("a", 2*far), kerneltest.Noise("b", 3*far)
					c := kerneltest.Noise("c", 3*far+old)
					args := Args{A: &a[1], A2: &a[far], ARow: 4 * ars, ACol: 4 * acs, B: &b[2], BRow: 4 * brs, K: k,
						Runs: runs, Groups: groups, AJump: 4 * ajump, BJump: 4 * bjump,
						Gaps: Gaps{AGap: 4 * agap, BGap: 4 * bgap},
						C:    &c[far], C2: &c[3], CRow: 4 * ldc, Last: last, Alpha: -0.5, Beta: 1, Old: 4 * old}
					want := append([]float32{}, c...)
					for r := range rows {
						fromA, toC := 1+r*ars, far+r*ldc
						if half := (rows + 1) / 2; r >= half {
							fromA, toC = far+(r-half)*ars, 3+(r-half)*ldc
						}
						for j := range vectors*s.Lanes + last {
							var sum float64
							for p := range max(1, groups) * runs * k {
								x, y := a[fromA+p*acs+p/k*ajump+p/k/runs*agap], b[2+p*brs+p/k*bjump+p/k/runs*bgap+j]
								sum = FMA(float64(x), float64(y), sum)
							}
							want[toC+j] = float32(FMA(-0.5, sum, float64(c[toC+j+old])))
						}
					}
					s.Tiles[rows-1][vectors](&args)
					kerneltest.Compare(t, fmt.Sprintf("%s, %d×%d, %d groups of %d runs of %d", i, rows,
						vectors*s.Lanes+last, groups, runs, k), c, want)
				}
			}
		}
	}
}
