package config

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// Values at the end of an epoch, for a largest step of 0.1, 5 epochs of warm-up and 100 in all.
func TestCosine(t *testing.T) {
	const per = 200
	s := Schedule{Alpha: 0.1, Eta: 0.004, Shape: CosineEpochs{Warmup: 5, Epochs: 100, PerEpoch: per}}
	for _, c := range []struct{ epoch, want float64 }{{2.5, 0.05}, {5, 0.1}, {52.5, 0.05}, {99, 2.7337e-5}, {100, 0}} {
		alpha, eta := s.At(int(c.epoch*per) - 1)
		if math.Abs(alpha-c.want) > 1e-4*c.want+1e-17 {
			t.Errorf("epoch %v: %v, want %v", c.epoch, alpha, c.want)
		}
		if math.Abs(eta-0.04*alpha) > 1e-18 {
			t.Errorf("epoch %v: eta/alpha is not constant: %v/%v", c.epoch, eta, alpha)
		}
	}
	if alpha, _ := s.At(1e6); alpha != 0 {
		t.Errorf("beyond the end: %v", alpha)
	}
}

func TestConstant(t *testing.T) {
	s := Schedule{Alpha: 0.1, Eta: 0.01}
	for _, at := range []int{0, 1, 1e9} {
		if alpha, eta := s.At(at); alpha != 0.1 || eta != 0.01 {
			t.Errorf("iteration %d: %v, %v", at, alpha, eta)
		}
	}
}

// Uncoupled, eta stays while alpha rises and falls.
func TestUncoupled(t *testing.T) {
	s := Schedule{Alpha: 0.1, Eta: 0.004, Uncoupled: true, Shape: CosineEpochs{Warmup: 5, Epochs: 100, PerEpoch: 10}}
	for _, at := range []int{0, 24, 500, 999} {
		if alpha, eta := s.At(at); eta != 0.004 || alpha == 0.1 {
			t.Errorf("iteration %d: %v, %v", at, alpha, eta)
		}
	}
}

// Factors that another program computed, at the iterations 0, 9, 10, 50, 79, 80, 81, 90 and 99 of a
// run of 100 with a warm-up of 10.
func TestShapes(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		want  string
	}{
		{WSD{10, 100, 20, 0, decayLinear},
			"0.090909 0.909091 1.000000 1.000000 1.000000 1.000000 0.950000 0.500000 0.050000"},
		{WSD{10, 100, 20, 0, decaySqrt},
			"0.090909 0.909091 1.000000 1.000000 1.000000 1.000000 0.776393 0.292893 0.025321"},
		{WSD{10, 100, 20, 0, decayCosine},
			"0.090909 0.909091 1.000000 1.000000 1.000000 1.000000 0.993844 0.500000 0.006156"},
		{Linear{10, 100, 0}, "0.090909 0.909091 1.000000 0.555556 0.233333 0.222222 0.211111 0.111111 0.011111"},
		{Steps{10, []int{30, 60}, 0.1},
			"0.090909 0.909091 1.000000 0.100000 0.010000 0.010000 0.010000 0.010000 0.010000"},
		{InverseRoot{10}, "0.100000 1.000000 0.953463 0.442807 0.353553 0.351364 0.349215 0.331497 0.316228"},
	} {
		var got []string
		for _, at := range []int{0, 9, 10, 50, 79, 80, 81, 90, 99} {
			got = append(got, fmt.Sprintf("%.6f", c.shape.Factor(at)))
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%T%+v:\n%s, want\n%s", c.shape, c.shape, s, c.want)
		}
	}
	// With a smallest step they end at it, and tend to it beyond the end.
	for _, shape := range []Shape{WSD{10, 100, 20, 0.1, decaySqrt}, Linear{10, 100, 0.1}} {
		if f := shape.Factor(100); math.Abs(f-0.1) > 1e-15 || shape.Factor(500) != f {
			t.Errorf("%T ends at %v, and has %v later", shape, f, shape.Factor(500))
		}
	}
}

// Until its decay, a run of schedule wsd has the step sizes of every longer one to the bit.
func TestStepSizesOfLongerRuns(t *testing.T) {
	for _, decay := range []float64{0.2, 30} {
		for _, steps := range []int{100, 250} {
			c := small()
			c.Schedule, c.WarmupT, c.DecayLength, c.Iterations, c.EvalPoints = scheduleWSD, 10, decay, 100, 1
			s, _ := resolve(t, c)
			start := 80
			if decay > 1 {
				start = 70
			}
			if at, err := s.DiffersBefore(100, steps*2); err != nil || at != start+1 {
				t.Errorf("a run of %d iterations differs from iteration %d on, %v; want %d", steps*2, at, err, start+1)
			}
		}
	}
}

// A finished run is continued where a longer one would have had its step sizes.
func TestContinuesTheSchedule(t *testing.T) {
	for _, c := range []struct {
		set  func(c *Config)
		want string // in the refusal; empty: it is continued
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.Schedule, c.WarmupT = scheduleInverseRoot, 10 }, ""},
		{func(c *Config) { c.Schedule, c.Milestones, c.StepFactor = scheduleStep, "20,60", 0.5 }, ""},
		{func(c *Config) { c.Schedule, c.WarmupT, c.DecayT = scheduleCosine, 10, 500 }, ""},
		{func(c *Config) { c.Schedule, c.WarmupT, c.DecayT = scheduleLinear, 10, 500 }, ""},
		{func(c *Config) { c.Schedule, c.WarmupT = scheduleLinear, 10 }, "other step sizes from the start"},
		{func(c *Config) { c.Schedule, c.WarmupT = scheduleCosine, 10 }, "other step sizes from the start"},
		{func(c *Config) { c.Schedule, c.Warmup = scheduleCosine, 1 }, "other step sizes from the start"},
		{func(c *Config) { c.Schedule = scheduleWSD }, ""}, // from a checkpoint before its decay
	} {
		short := small()
		short.Iterations, short.EvalPoints = 100, 2
		c.set(&short)
		long := short
		long.Iterations, long.EvalPoints = 200, 4
		s, _ := resolve(t, long)
		old, _ := resolve(t, short)
		err := s.Continues(old.Config.Stored())
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", short.Schedule, err, c.want)
		}
	}
}

// Schedules that do not fit the run are refused, with the key.
func TestSchedulesThatDoNotFit(t *testing.T) {
	for want, set := range map[string]func(c *Config){
		"decay_length 300":  func(c *Config) { c.Schedule, c.DecayLength = scheduleWSD, 300 },
		"decay_length 1.5":  func(c *Config) { c.Schedule, c.DecayLength = scheduleWSD, 1.5 },
		"milestones":        func(c *Config) { c.Schedule = scheduleStep },
		"ascending order":   func(c *Config) { c.Schedule, c.Milestones = scheduleStep, "60,30" },
		"warmup_iterations": func(c *Config) { c.Schedule, c.WarmupT = scheduleLinear, 100 },
		"min_alpha 3":       func(c *Config) { c.Schedule, c.MinAlpha = scheduleWSD, 3 },
		"needs at least 1": func(c *Config) {
			c.Schedule = scheduleInverseRoot
			c.SetExplicit("warmup_iterations")
		},
	} {
		c := small()
		c.Iterations, c.EvalPoints = 100, 1
		set(&c)
		c.SetExplicit(append(c.Explicit(), "decay_length", "min_alpha", "warmup_iterations")...)
		if _, err := c.Resolve(labSet, labModel(t, c)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
