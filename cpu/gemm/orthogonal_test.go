package gemm

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/kernel"
	"fspda/cpu/vec"
	"fspda/device"
	"fspda/internal/testing/kerneltest"
)

// orthogonalized is Orthogonalize by whole products, in which nothing is mirrored or read in place.
func orthogonalized(x []float32, rows, cols int, scale float64) []float32 {
	left, side := rows <= cols, min(rows, cols)
	factor := float32(1 / max(math.Sqrt(vec.SumOfSquares(x)), device.OrthogonalMinNorm))
	now, p := make([]float32, len(x)), make([]float32, side*side)
	for i, v := range x {
		now[i] = factor * v
	}
	for range device.OrthogonalSteps {
		Multiply(!left, left, side, side, max(rows, cols), 1, now, cols, now, cols, 0, p, side)
		q, next := slices.Clone(p), slices.Clone(now)
		Multiply(false, false, side, side, side, device.OrthogonalC, p, side, p, side, device.OrthogonalB, q, side)
		a, lda, b, ldb := q, side, now, cols
		if !left {
			a, lda, b, ldb = now, cols, q, side
		}
		Multiply(false, false, rows, cols, side, 1, a, lda, b, ldb, device.OrthogonalA, next, cols)
		now = next
	}
	for i, v := range now {
		now[i] = float32(scale) * v
	}
	return now
}

// Symmetric products that are computed by half and mirrored have the bits of whole ones, with every
// instruction set and on several goroutines.
func TestOrthogonalizeBits(t *testing.T) {
	team := kernel.NewTeam(2)
	defer team.Stop()
	for _, code := range isa.Available() {
		isa.With(code, func() {
			for _, s := range [][2]int{{1, 1}, {3, 3}, {8, 8}, {13, 20}, {64, 64}, {64, 96}, {96, 64}, {67, 41},
				{41, 67}, {128, 128}, {70, 400}, {100, 300}, {300, 261}, {400, 389}} {
				if code == isa.Go && s[0]*s[1] > 5000 {
					continue // It takes seconds.
				}
				rows, cols := s[0], s[1]
				x := kerneltest.Noise("x", rows*cols)
				want := orthogonalized(x, rows, cols, 0.7)
				for name, o := range map[string]*kernel.Args{"one": {},
					"a team": {Workers: &kernel.Workers{Team: team}}} {
					got := slices.Clone(x)
					Orthogonalize(o, got, rows, cols, 0.7)
					kerneltest.Compare(t, fmt.Sprintf("%v, %d×%d on %s", code, rows, cols, name), got, want)
				}
			}
		})
	}
}
