package config

import (
	"cmp"
	"math"
)

// Schedule gives the step sizes of an iteration. Alpha and Eta keep their ratio, because the limit
// of the duals depends on it, unless Uncoupled is set.
type Schedule struct {
	Alpha, Eta float64 // The largest step sizes of the run.
	Uncoupled  bool    // Eta is constant, as in the released program's asynchronous variant
	Cosine     bool
	Warmup     float64 // epochs of linear rise, cosine only
	Epochs     float64 // The length of the run.
	PerEpoch   float64 // iterations per epoch
	// Cosine by iterations, in place of epochs; nil: by epochs
	Iterations *CosineIterations
}

// CosineIterations is a cosine schedule by iterations, as nanoGPT has it.
type CosineIterations struct {
	Warmup, End int
	Min         float64 // The last step size as a share of the largest one.
}

// factor returns the share of the largest step size at iteration t: (t+1)/(w+1) before w, Min after
// End, and else Min + (1-Min)/2·(1 + cos(π(t-w)/(End-w))).
func (c CosineIterations) factor(t int) float64 {
	switch {
	case t < c.Warmup:
		return float64(t+1) / float64(c.Warmup+1)
	case t > c.End:
		return c.Min
	}
	done := 1.0
	if c.End > c.Warmup {
		done = float64(t-c.Warmup) / float64(c.End-c.Warmup)
	}
	return c.Min + float64((1-c.Min)/2*(1+math.Cos(math.Pi*done)))
}

// At returns alpha and eta of iteration t. With e = (t+1)/PerEpoch, a cosine schedule rises as
// alpha·e/w up to epoch w and then falls as alpha/2·(1 + cos(π(e-w)/(Epochs-w))). CosineIterations
// is another form of it.
func (s Schedule) At(t int) (alpha, eta float64) {
	f := 1.0
	switch {
	case s.Iterations != nil:
		f = s.Iterations.factor(t)
	case s.Cosine:
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

// cosineByIterations reports whether the cosine schedule is given in iterations.
func (k StepKeys[N]) cosineByIterations() bool {
	return k.WarmupT > 0 || k.DecayT > 0 || k.MinAlpha > 0
}

// scheduleByIterations makes the cosine schedule by iterations.
func (s *Setup) scheduleByIterations() error {
	c := s.Config
	end := cmp.Or(c.DecayT, c.Iterations)
	switch {
	case c.WarmupT >= end:
		return Invalid("warmup_iterations", c.WarmupT, "alpha falls until iteration %d: warm up for fewer iterations, "+
			"or train longer", end)
	case c.MinAlpha > c.Alpha:
		return Invalid("min_alpha", c.MinAlpha, "expected at most alpha, which is %v", c.Alpha)
	}
	s.Schedule.Iterations = &CosineIterations{Warmup: c.WarmupT, End: end, Min: c.MinAlpha / c.Alpha}
	return nil
}
