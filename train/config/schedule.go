package config

import "math"

// Schedule gives the step sizes of an iteration. Alpha and Eta keep their ratio, because the limit
// of the duals depends on it, unless Uncoupled is set.
type Schedule struct {
	Alpha, Eta float64 // the largest ones
	Uncoupled  bool    // Eta is constant, as in the released program's asynchronous variant
	Cosine     bool
	Warmup     float64 // epochs of linear rise, cosine only
	Epochs     float64 // in the whole run
	PerEpoch   float64 // iterations per epoch
}

// At returns alpha and eta of iteration t. With e = (t+1)/PerEpoch, a cosine schedule rises as
// alpha·e/w up to epoch w and then falls as alpha/2·(1 + cos(π(e-w)/(Epochs-w))).
func (s Schedule) At(t int) (alpha, eta float64) {
	f := 1.0
	if s.Cosine {
		f = s.factor(float64(t+1) / s.PerEpoch)
	}
	if s.Uncoupled {
		return s.Alpha * f, s.Eta
	}
	return s.Alpha * f, s.Eta * f
}

func (s Schedule) factor(e float64) float64 {
	if e < s.Warmup {
		return e / s.Warmup
	}
	if e >= s.Epochs {
		return 0
	}
	return 0.5 * (1 + math.Cos(math.Pi*(e-s.Warmup)/(s.Epochs-s.Warmup)))
}
