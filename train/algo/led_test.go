package algo

import "testing"

func TestGoldenLED(t *testing.T) {
	g := wholeRing(LED{Tau: 2}, every(2))
	golden(t, g, "1.4924459926 1.6537448572 1.6715033950", "1.4843726052 1.7041830871 1.7131756464")
	check(t, "y_0", g.aux(0, "y"), "-0.4681169975 -0.7875008429 -0.9183769981")
}

// LED is Scaffnew with averaging every tau iterations, p = 1/tau and c = 1, with y = -alpha·tau·h;
// also with noise and momentum.
func TestLEDIsPeriodicScaffnew(t *testing.T) {
	forWorlds(t, func(t *testing.T, w world, q quadratics) {
		const tau, alpha = 5, 0.02
		a := w.static(LED{Tau: tau, Descent: heavyBall(0.6)}, q, alpha, 0, every(tau))
		b := w.static(Scaffnew{P: 1.0 / tau, C: 1, Descent: heavyBall(0.6)}, q, alpha, 0, every(tau))
		a.grad, b.grad = noisy(q, w.seed, 0.2), noisy(q, w.seed, 0.2)
		for it := range 1000 {
			a.step(t, it)
			b.step(t, it)
		}
		for i := range w.n {
			if e := distance(a.x(i), b.x(i)); e > 1e-12 {
				t.Errorf("agent %d: differ by %g", i, e)
			}
			for k, y := range a.aux(i, "y") {
				if e := y + alpha*tau*b.aux(i, "h")[k]; e > 1e-12 || e < -1e-12 {
					t.Errorf("y and h of agent %d: differ by %g", i, e)
				}
			}
		}
	})
}
