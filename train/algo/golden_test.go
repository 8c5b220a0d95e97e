package algo

import (
	"fmt"
	"math"
	"testing"
)

// goldenGame is a problem of four agents and three coordinates whose trajectories were computed in
// float64 by an independent program: ring edges e0=(0,1), e1=(1,2), e2=(2,3), e3=(0,3), of which
// e_{t mod 4} is active with the mask {t mod 3, (t+1) mod 3}; h_ik = 1+((i+2k) mod 3)/2, b_ik =
// (i+1) - k/2·(-1)^i, gradient factor 1+0.1·(-1)^t; alpha 0.1, eta 0.05; x = 0 at the start.
func goldenGame(a Algorithm) *game { return goldenGameAt(a, 0) }

// goldenGameAt is goldenGame with all coordinates equal to start at the start.
func goldenGameAt(a Algorithm, start float64) *game {
	g := newGame(a, 4, []float64{start, start, start})
	g.alpha, g.eta = 0.1, 0.05
	ring := [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}}
	g.edges = func(t int) [][2]int { return ring[t%4 : t%4+1] }
	g.mask = func(t, _, _ int) []uint32 {
		a, b := uint32(t%3), uint32((t+1)%3)
		return []uint32{min(a, b), max(a, b)}
	}
	q := goldenQuadratics(3)
	q.factor = func(t int) float64 { return 1 + 0.1*sign(t) }
	g.grad = q.grad
	return g
}

// goldenQuadratics are the functions of the golden game, of so many coordinates, with factor 1.
func goldenQuadratics(d int) quadratics {
	var q quadratics
	for i := range 4 {
		var h, b []float64
		for k := range d {
			h = append(h, 1+float64((i+2*k)%3)/2)
			b = append(b, float64(i+1)-0.5*float64(k)*sign(i))
		}
		q.h, q.b = append(q.h, h), append(q.b, b)
	}
	return q
}

// goldenObjective is F of the golden game, with factor 1.
func goldenObjective(x []float64) (f float64) {
	for i := range 4 {
		for k, v := range x {
			h, b := 1+float64((i+2*k)%3)/2, float64(i+1)-0.5*float64(k)*sign(i)
			f += h * (v - b) * (v - b) / 8
		}
	}
	return f
}

func sign(t int) float64 {
	if t%2 == 0 {
		return 1
	}
	return -1
}

// golden runs six iterations of the golden game and compares the models of agents 0 and 2.
func golden(t *testing.T, g *game, x0, x2 string) {
	t.Helper()
	for it := range 6 {
		g.step(t, it)
	}
	check(t, "x_0", g.x(0), x0)
	check(t, "x_2", g.x(2), x2)
}

// wholeRing is the golden game on all four edges at once, in the iterations selected by when,
// without masks, with the Metropolis weights 1/3 of the ring.
func wholeRing(a Algorithm, when func(t int) bool) *game {
	g := goldenGame(a)
	ring := [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 3}}
	g.mask = func(int, int, int) []uint32 { return nil }
	g.edges = func(t int) [][2]int {
		if when(t) {
			return ring
		}
		return nil
	}
	g.fixed = func(int, int) float64 { return 1.0 / 3 }
	return g
}

// check compares with ten printed digits: the tolerance is half a unit of the last digit.
func check(t *testing.T, what string, got []float64, want string) {
	t.Helper()
	w := make([]float64, 3)
	if _, err := fmt.Sscan(want, &w[0], &w[1], &w[2]); err != nil {
		t.Fatal(err)
	}
	for k := range w {
		if math.Abs(got[k]-w[k]) > 0.6e-10 {
			t.Errorf("%s[%d] = %.10f, want %.10f", what, k, got[k], w[k])
		}
	}
}
