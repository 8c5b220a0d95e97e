package config

import (
	"strconv"
	"strings"

	"fspda/train/algo"
	"fspda/train/setting"
)

// averageNone is the value of the key average without one.
const averageNone = "none"

// parseAverage returns the average of weights that a value of the key average names; false: it
// names none.
func parseAverage(value string) (a algo.Average, ok bool) {
	kind, rest, _ := strings.Cut(value, "(")
	inner, closed := strings.CutSuffix(rest, ")")
	if !closed {
		return a, false
	}
	switch kind {
	case "ema":
		decay, err := strconv.ParseFloat(inner, 64)
		return algo.Average{Decay: decay}, err == nil && decay > 0 && decay < 1
	case "tail":
		after, err := strconv.Atoi(inner)
		return algo.Average{After: after}, err == nil && after >= 0
	default:
		return a, false
	}
}

func checkAverage(key string, value any) error {
	got := value.(string)
	if _, ok := parseAverage(got); ok || got == averageNone {
		return nil
	}
	return setting.OneOf(averageNone, "ema(decay) with a decay above 0 and below 1",
		"tail(t) with an iteration t of at least 0")(key, got)
}

// average gives the algorithm the average of weights of the run, if it has one.
func (s *Setup) average() error {
	var average algo.Averaging
	named, ok := parseAverage(s.Config.Average)
	own, scheduleFree := s.Traits.Descent.Optimizer().(algo.Averaging)
	switch {
	case ok && scheduleFree:
		return Invalid("average", s.Config.Average, "optimizer %s evaluates an average of its own: use average none",
			s.Config.Optimizer)
	case scheduleFree:
		average = own
	case ok:
		average = named
	default:
		return nil
	}
	switch {
	case s.Asynchronous():
		return Invalid("average", s.Config.Average, "%s has no iterations in common: use average none, or an "+
			"algorithm with iterations", s.method.Name)
	case len(s.Buffers) > 0 && s.Config.BN == BNLocal:
		return Invalid("bn", s.Config.BN, "the statistics of an agent do not belong to the average of its "+
			"weights: use bn recalibrate")
	}
	s.Algo = algo.Averaged{Algorithm: s.Algo, Average: average}
	s.Traits = s.Algo.Traits()
	return nil
}
