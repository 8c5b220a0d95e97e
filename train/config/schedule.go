package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Schedule gives the step sizes of an iteration. Alpha and Eta keep their ratio, because the limit
// of the duals depends on it, unless Uncoupled is set.
type Schedule struct {
	Alpha, Eta float64 // The largest step sizes of the run.
	Uncoupled  bool    // Eta is constant, as in the released program's asynchronous variant
	Shape      Shape   // nil: constant
}

// Shape is the course of the step sizes.
type Shape interface {
	// Factor returns the share of the largest step size at iteration t.
	Factor(t int) float64
}

func (s Schedule) At(t int) (alpha, eta float64) {
	f := 1.0
	if s.Shape != nil {
		f = s.Shape.Factor(t)
	}
	if s.Uncoupled {
		return s.Alpha * f, s.Eta
	}
	return s.Alpha * f, s.Eta * f
}

// CosineEpochs rises as e/w up to epoch w and then falls as (1 + cos(π(e-w)/(Epochs-w)))/2, with e
// = (t+1)/PerEpoch.
type CosineEpochs struct {
	Warmup   float64 // Epochs of the rise.
	Epochs   float64 // The length of the run.
	PerEpoch float64 // Iterations of an epoch.
}

func (c CosineEpochs) Factor(t int) float64 {
	e := float64(t+1) / c.PerEpoch
	if e < c.Warmup {
		return e / c.Warmup
	}
	if e >= c.Epochs {
		return 0
	}
	return 0.5 * (1 + math.Cos(math.Pi*(e-c.Warmup)/(c.Epochs-c.Warmup)))
}

// CosineIterations is a cosine schedule by iterations, as nanoGPT has it.
type CosineIterations struct {
	Warmup, End int
	Min         float64 // The last step size as a share of the largest one.
}

// Factor returns (t+1)/(w+1) before w, Min after End, and else Min + (1-Min)/2·(1 +
// cos(π(t-w)/(End-w))).
func (c CosineIterations) Factor(t int) float64 {
	switch {
	case t < c.Warmup:
		return warming(t, c.Warmup)
	case t > c.End:
		return c.Min
	}
	done := 1.0
	if c.End > c.Warmup {
		done = float64(t-c.Warmup) / float64(c.End-c.Warmup)
	}
	return c.Min + float64((1-c.Min)/2*(1+math.Cos(math.Pi*done)))
}

// warming is the factor of a linear warm-up of w iterations, at an iteration before w.
func warming(t, w int) float64 { return float64(t+1) / float64(w+1) }

// WSD is warm-up, a stable stretch, and a decay over the last iterations. A run has the step sizes
// of every longer one until its decay starts.
type WSD struct {
	Warmup, End, Decay int     // Decay counts the iterations of the decay, which ends at End.
	Min                float64 // The last step size as a share of the largest one.
	Form               string  // A value of the key decay_shape.
}

func (w WSD) Factor(t int) float64 {
	start := w.End - w.Decay
	switch {
	case t < w.Warmup:
		return warming(t, w.Warmup)
	case t <= start:
		return 1
	}
	q := math.Min(1, float64(t-start)/float64(w.Decay))
	h := 1 - q
	switch w.Form {
	case decaySqrt:
		h = 1 - math.Sqrt(q)
	case decayCosine:
		h = (1 + math.Cos(math.Pi*q)) / 2
	}
	return w.Min + float64((1-w.Min)*h)
}

// Linear falls on a line from the end of the warm-up to End.
type Linear struct {
	Warmup, End int
	Min         float64 // The last step size as a share of the largest one.
}

func (l Linear) Factor(t int) float64 {
	if t < l.Warmup {
		return warming(t, l.Warmup)
	}
	q := math.Min(1, float64(t-l.Warmup)/float64(max(1, l.End-l.Warmup)))
	return l.Min + float64((1-l.Min)*(1-q))
}

// Steps multiplies by By at each of the iterations At.
type Steps struct {
	Warmup int
	At     []int // ascending
	By     float64
}

func (s Steps) Factor(t int) float64 {
	if t < s.Warmup {
		return warming(t, s.Warmup)
	}
	passed, _ := slices.BinarySearch(s.At, t+1)
	return math.Pow(s.By, float64(passed))
}

// InverseRoot rises to 1 over the warm-up, and falls with the root of the iterations after it.
type InverseRoot struct{ Warmup int }

func (r InverseRoot) Factor(t int) float64 {
	w := float64(r.Warmup)
	return math.Min(float64(t+1)/w, math.Sqrt(w/float64(t+1)))
}

// The values of the key schedule.
const (
	scheduleConstant    = "constant"
	scheduleCosine      = "cosine"
	scheduleWSD         = "wsd"
	scheduleLinear      = "linear"
	scheduleStep        = "step"
	scheduleInverseRoot = "inverse-sqrt"
)

// The values of the key decay_shape.
const (
	decayLinear = "linear"
	decaySqrt   = "sqrt"
	decayCosine = "cosine"
)

// cosineByIterations reports whether the cosine schedule is given in iterations.
func (k ScheduleKeys) cosineByIterations() bool {
	return k.WarmupT > 0 || k.DecayT > 0 || k.MinAlpha > 0
}

// makeSchedule makes the schedule of the run, and refuses one that does not fit its length.
func (s *Setup) makeSchedule() error {
	c := s.Config
	shape, err := s.shape(c.Iterations)
	s.Schedule = Schedule{Alpha: c.Alpha, Eta: c.Eta, Uncoupled: c.EtaSchedule == "constant", Shape: shape}
	return err
}

// shape makes the shape of the schedule for a run of another length.
func (s *Setup) shape(iterations int) (Shape, error) {
	c := s.Config
	end, low := cmp.Or(c.DecayT, iterations), c.MinAlpha/c.Alpha
	if c.Schedule == scheduleCosine && !c.cosineByIterations() {
		shape := CosineEpochs{c.Warmup, float64(iterations) / s.PerEpoch(), s.PerEpoch()}
		if c.Warmup >= shape.Epochs {
			return shape, Invalid("warmup", c.Warmup, "the run has only %.3g epochs of %.4g iterations: warm up for "+
				"fewer epochs, or train longer", shape.Epochs, s.PerEpoch())
		}
		return shape, nil
	}
	var shape Shape
	switch c.Schedule {
	case scheduleConstant:
		if c.WarmupT == 0 {
			return nil, nil
		}
		shape = Steps{Warmup: c.WarmupT, By: 1}
	case scheduleCosine:
		shape = CosineIterations{c.WarmupT, end, low}
	case scheduleLinear:
		shape = Linear{c.WarmupT, end, low}
	case scheduleWSD:
		return s.wsd(iterations, low)
	case scheduleStep:
		at, err := parseMilestones("milestones", c.Milestones)
		if err == nil && len(at) == 0 {
			err = Invalid("milestones", c.Milestones, "schedule step needs the iterations at which alpha falls, such "+
				"as 3000,6000")
		}
		return Steps{c.WarmupT, at, c.StepFactor}, err
	case scheduleInverseRoot:
		if c.WarmupT < 1 {
			return nil, Invalid("warmup_iterations", c.WarmupT, "schedule inverse-sqrt needs at least 1: alpha falls "+
				"with the root of the iterations over it")
		}
		return InverseRoot{c.WarmupT}, nil
	}
	switch {
	case c.WarmupT >= end:
		return shape, Invalid("warmup_iterations", c.WarmupT, "alpha falls until iteration %d: warm up for fewer "+
			"iterations, or train longer", end)
	case c.MinAlpha > c.Alpha:
		return shape, Invalid("min_alpha", c.MinAlpha, "expected at most alpha, which is %v", c.Alpha)
	}
	return shape, nil
}

// wsd makes the shape of the schedule wsd for a run of the given number of iterations.
func (s *Setup) wsd(iterations int, low float64) (Shape, error) {
	c := s.Config
	decay := int(c.DecayLength)
	if c.DecayLength < 1 {
		decay = max(1, int(math.Round(c.DecayLength*float64(iterations))))
	}
	switch {
	case c.WarmupT+decay > iterations:
		return nil, Invalid("decay_length", c.DecayLength, "the decay of %d iterations and the warm-up of %d do not "+
			"fit into the %d of the run: use a smaller decay_length or warmup_iterations", decay, c.WarmupT, iterations)
	case c.MinAlpha > c.Alpha:
		return nil, Invalid("min_alpha", c.MinAlpha, "expected at most alpha, which is %v", c.Alpha)
	}
	return WSD{c.WarmupT, iterations, decay, low, c.DecayShape}, nil
}

// parseMilestones reads ascending iterations, comma separated.
func parseMilestones(key, list string) (at []int, err error) {
	for _, part := range split(list) {
		t, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || t < 1 || len(at) > 0 && t <= at[len(at)-1] {
			return nil, Invalid(key, list, "expected iterations from 1 on in ascending order, comma separated, such "+
				"as 3000,6000")
		}
		at = append(at, t)
	}
	return at, nil
}

// checkMilestones refuses texts that parseMilestones cannot read.
func checkMilestones(key string, value any) error {
	_, err := parseMilestones(key, value.(string))
	return err
}

// checkDecayLength refuses lengths that are neither a share nor iterations.
func checkDecayLength(key string, value any) error {
	if v := value.(float64); v >= 1 && v != math.Trunc(v) {
		return Invalid(key, v, "expected a whole number of iterations, or a share of the run below 1")
	}
	return nil
}

// DecayStart returns the iteration at which the decay of schedule wsd starts; 0: the run has none.
func (s *Setup) DecayStart() int {
	if w, ok := s.Schedule.Shape.(WSD); ok && w.Decay < w.End {
		return w.End - w.Decay
	}
	return 0
}

// DiffersBefore returns the first iteration before t at which runs of two lengths have different
// step sizes; t if there is none.
func (s *Setup) DiffersBefore(t, length int) (int, error) {
	other, err := s.shape(length)
	if err != nil {
		return 0, fmt.Errorf("config: the schedule of a run of %d iterations: %w", length, err)
	}
	return s.differs(other, t), nil
}

// differs returns the first iteration before t at which another shape has other step sizes; t if
// there is none.
func (s *Setup) differs(other Shape, t int) int {
	was := s.Schedule
	was.Shape = other
	for k := range t {
		a, _ := s.Schedule.At(k)
		if b, _ := was.At(k); math.Float64bits(a) != math.Float64bits(b) {
			return k
		}
	}
	return t
}

// branchKeys are the keys in which a run may differ from another one with which it begins.
var branchKeys = []string{"iterations", "epochs", "eval_points", "schedule", "warmup", "warmup_iterations",
	"decay_iterations", "min_alpha", "decay_length", "decay_shape", "milestones", "step_factor"}

// Begins compares the run with another one, of which a checkpoint at iteration t has the fingerprint
// and the values that it covers. It returns the first iteration before t at which their step sizes
// differ; t: there is none. false: they differ in more than their length and schedule.
func (s *Setup) Begins(t int, fingerprint string, values map[string]string) (at int, ok bool) {
	old, was := s.Config.Stored(), *s
	for _, f := range old.fields() {
		if !slices.Contains(branchKeys, f.Name) {
			continue
		}
		text, covered := values[f.Name]
		if !covered {
			text = fmt.Sprint(f.Initial())
		}
		if f.setText(text) != nil || was.put(f.Name, f.get()) != nil {
			return 0, false
		}
	}
	if old.Fingerprint() != fingerprint {
		return 0, false
	}
	shape, err := was.shape(was.Config.Iterations)
	return s.differs(shape, t), err == nil
}
