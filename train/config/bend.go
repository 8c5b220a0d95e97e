package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"fspda/model"
)

// bends reports whether a key has its default and was not set, so that it may take another value
// where the run could not have the default. Of a value that was set, Resolve refuses a run.
func (s *Setup) bends(key string) bool {
	if slices.Contains(s.Config.given.explicit, key) {
		return false
	}
	if name, ok := strings.CutPrefix(key, paramKey("")); ok {
		_, given := s.Config.given.Params[name]
		return !given
	}
	return fmt.Sprint(s.Config.given.Value(key)) == fmt.Sprint(s.Config.given.Defaults().Value(key))
}

// bent says that a key has another value than its default, and why its default does not fit.
func (s *Setup) bent(key string, from, to any, wrong string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf("%s is %v: its default %v %s", key, to, from,
		fmt.Sprintf(wrong, args...)))
}

// sayLanguage says which defaults of a language model do not fit momentum or layer_lr.
func (s *Setup) sayLanguage(c Config) {
	if c.Optimizer != auto {
		return // resolved, or set
	}
	now := c.Defaults()
	c.Momentum, c.LayerLR = 0, ""
	usual := c.Defaults()
	for _, key := range []string{"optimizer", "clip_norm"} {
		if was := usual.Value(key); was != now.Value(key) && s.bends(key) {
			s.bent(key, was, s.at(key), "does not fit momentum or layer_lr")
		}
	}
}

// settleHeads takes the heads of a language model whose number was not set from its network.
func (s *Setup) settleHeads() {
	c := &s.Config
	usual, ok := model.NamedTransformer(c.Model, model.Transformer{})
	if sizes, _ := model.NamedTransformer(c.Model, model.Transformer{Width: c.Width}); ok && c.Heads == 0 &&
		sizes.Heads != usual.Heads {
		s.bent("heads", usual.Heads, sizes.Heads, "does not divide width %d as the network needs", c.Width)
		c.Heads = sizes.Heads
	}
}

// maxBends bounds how often a default is replaced by one that the check of the method names.
const maxBends = 10

// checkMethod resolves eta auto, and asks the method for its warnings. Where a default does not
// pass, it tries the value that the method's error names instead.
func (s *Setup) checkMethod() error {
	var said []*Error // the first error of each key
	for range maxBends {
		s.settleEta()
		if s.method.Check == nil {
			return nil
		}
		warnings, err := s.method.Check(checked{s})
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Instead == nil || !s.bends(e.Key) {
			for _, e := range said {
				s.bent(e.Key, e.Got, s.at(e.Key), "%s", e.Want)
			}
			s.Warnings = append(s.Warnings, warnings...)
			return err
		}
		if !slices.ContainsFunc(said, func(o *Error) bool { return o.Key == e.Key }) {
			said = append(said, e)
		}
		if err := s.put(e.Key, e.Instead); err != nil {
			return err
		}
	}
	return said[0]
}

// at returns the resolved value of a key, or of a setting of the method's own.
func (s *Setup) at(key string) (value any) {
	if name, ok := strings.CutPrefix(key, paramKey("")); ok {
		return s.Config.Params[name]
	}
	return s.Value(key)
}

// put gives a key, or a setting of the method's own, a value.
func (s *Setup) put(key string, value any) error {
	if name, ok := strings.CutPrefix(key, paramKey("")); ok {
		s.Config.Params = s.Config.Params.with(Params{name: value})
		return nil
	}
	sections := reflect.ValueOf(&s.Config).Elem()
	for k := range sections.NumField() {
		section := sections.Field(k)
		for i := 0; section.Type() != reflect.TypeFor[Config]() && i < section.NumField(); i++ {
			if section.Type().Field(i).Tag.Get("key") == key {
				section.Field(i).Set(reflect.ValueOf(value).Convert(section.Field(i).Type()))
			}
		}
	}
	if key == "mixing" {
		return s.mix()
	}
	return nil
}

// bendBatch makes a batch that was not set as small as the smallest shard.
func (s *Setup) bendBatch() {
	c, least := &s.Config, math.MaxInt
	for _, shard := range s.Shards {
		least = min(least, len(shard))
	}
	if c.Sampling == "epochs" && least > 0 && c.Batch > least && s.bends("batch") {
		s.bent("batch", c.Batch, least, "is larger than the smallest shard")
		c.Batch = least
	}
}

// bendSteps makes a number of local steps that was not set a divisor of the iterations, because a
// run ends with a round. A number of iterations that was not set is changed by bendLength instead.
func (s *Setup) bendSteps() {
	c, kind := &s.Config, s.Traits.Edges
	rounds := kind.Collective && s.method.uses("local_steps") || kind.AtRoundEnds && !kind.OptionalRounds ||
		kind.InRounds && !kind.Drawn && c.Edges == "" && c.Agents > 1
	usual := cmp.Or(s.Traits.LocalSteps, defaultSteps)
	if !rounds || c.Iterations%usual == 0 || s.bends("iterations") && c.Epochs == 0 || !s.bends("local_steps") {
		return
	}
	c.LocalSteps = nearestDivisor(c.Iterations, usual)
	s.bent("local_steps", usual, c.LocalSteps, "does not divide the run, which has %d iterations and ends with a round",
		c.Iterations)
}

// bendLength makes iterations that were not set whole rounds, and evaluations whose number was not
// set fall between rounds.
func (s *Setup) bendLength() {
	c := &s.Config
	tau := s.method.New(s.settings()).Traits().RoundLength()
	if rest := c.Iterations % tau; rest > 0 && c.Epochs == 0 && s.bends("iterations") {
		whole := max(tau, c.Iterations-rest)
		s.bent("iterations", c.Iterations, whole, "ends within a round, which has %d iterations", tau)
		c.Iterations = whole
		if s.evals.every > 0 {
			c.EvalPoints = s.evals.points(whole)
		}
	}
	rounds := c.Iterations / tau
	if tau == 1 || c.Iterations%tau != 0 || s.evals.every > 0 || rounds%s.EvalCount() == 0 || !s.bends("eval_points") {
		return
	}
	points := nearestDivisor(rounds, c.EvalPoints)
	s.bent("eval_points", c.EvalPoints, points, "does not divide the number of rounds, %d, between which %s is "+
		"evaluated", rounds, c.Algo)
	c.EvalPoints = points
}

// usualUnitStep is the step size of optimizers with unit steps in PyTorch.
const usualUnitStep = 0.001

// bendAlpha makes a step size that was not set small where every optimizer of the method has unit
// steps.
func (s *Setup) bendAlpha() {
	c := &s.Config
	others := s.method.takesOne(func(o Optimizer) bool { return !o.UnitSteps })
	if c.Alpha <= largeUnitStep || others || !s.bends("alpha") {
		return
	}
	s.bent("alpha", c.Alpha, usualUnitStep, "is too large for %s, which moves each weight by about alpha in an "+
		"iteration", c.Optimizer)
	c.Alpha = usualUnitStep
}

// bendSchedule makes a warm-up that was not set a tenth of a run that would end within it, and
// a smallest step size that was not set a tenth of the largest one if it is above that.
func (s *Setup) bendSchedule() {
	c := &s.Config
	if c.Schedule == scheduleConstant && c.WarmupT == 0 {
		return
	}
	if c.Schedule == scheduleInverseRoot && c.WarmupT == 0 && s.bends("warmup_iterations") {
		c.WarmupT = max(1, c.Iterations/10)
		s.bent("warmup_iterations", 0, c.WarmupT, "is too small for schedule inverse-sqrt")
	}
	if c.MinAlpha > c.Alpha && s.bends("min_alpha") {
		least := sixDigits(c.Alpha / 10)
		s.bent("min_alpha", c.MinAlpha, least, "is above alpha, which is %v", c.Alpha)
		c.MinAlpha = least
	}
	if end := cmp.Or(c.DecayT, c.Iterations); c.WarmupT >= end && s.bends("warmup_iterations") {
		s.bent("warmup_iterations", c.WarmupT, end/10, "is not below %d, where alpha has fallen", end)
		c.WarmupT = end / 10
	}
	if epochs := float64(c.Iterations) / s.PerEpoch(); c.Schedule == scheduleCosine && !c.cosineByIterations() &&
		c.Warmup >= epochs && s.bends("warmup") {
		tenth := sixDigits(epochs / 10)
		s.bent("warmup", c.Warmup, tenth, "is not below %.3g, the epochs of the run", epochs)
		c.Warmup = tenth
	}
}

// nearestDivisor returns the divisor of n whose ratio to a number is nearest to 1.
func nearestDivisor(n, to int) int {
	best, least := 1, math.Inf(1)
	for k := 1; k*k <= n; k++ {
		if n%k != 0 {
			continue
		}
		for _, d := range [2]int{k, n / k} {
			if off := float64(max(d, to)) / float64(min(d, to)); off < least {
				best, least = d, off
			}
		}
	}
	return best
}
