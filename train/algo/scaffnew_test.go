package algo

import "testing"

func TestGoldenScaffnew(t *testing.T) {
	g := wholeRing(Scaffnew{P: 0.5, C: 1}, every(2))
	golden(t, g, "1.4924459926 1.6537448572 1.6715033950", "1.4843726052 1.7041830871 1.7131756464")
	check(t, "h_0", g.aux(0, "h"), "2.3405849873 3.9375042143 4.5918849905")
}

// A step size of zero leaves h unchanged and causes no division by zero.
func TestScaffnewWithoutStep(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		g := w.static(Scaffnew{P: 0.5, C: 1}, q, 0, 0, always)
		g.x(0)[0] = 1
		g.step(t, 0)
		if m := mean(w.n, g.x); distance(m, append([]float64{1 / float64(w.n)}, make([]float64, w.d-1)...)) > 1e-15 ||
			g.x(0)[0] == 1 {
			t.Errorf("the averaging step made %v of agent 0, the mean is %v", g.x(0), m)
		}
		if distance(g.aux(0, "h"), make([]float64, w.d)) != 0 {
			t.Errorf("h = %v", g.aux(0, "h"))
		}
	})
}
