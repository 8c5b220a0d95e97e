package config

import (
	"fmt"
	"math"
	"slices"
)

// Lengthen prepares the configuration of a run that continues a finished one beyond its end: c is
// the finished run's, old, with more iterations or epochs. The distance between evaluations
// stays as it was. A configuration of the same length is left alone.
func (c *Config) Lengthen(old Config) error { return c.resize(old, false) }

// Branch is Lengthen for a run that begins as old did, and which may be shorter.
func (c *Config) Branch(old Config) error { return c.resize(old, true) }

func (c *Config) resize(old Config, shorter bool) error {
	if c.Iterations == old.Iterations && c.Epochs == old.Epochs {
		return nil
	}
	key, from, to := "iterations", float64(old.Iterations), float64(c.Iterations)
	if old.Epochs > 0 {
		if c.Iterations != old.Iterations {
			return Invalid("iterations", c.Iterations, "the length of this run is given by epochs %v: set epochs "+
				"instead", old.Epochs)
		}
		key, from, to = "epochs", old.Epochs, c.Epochs
		c.Iterations = Default().Iterations // epochs says how many
	} else if c.Epochs > 0 {
		return Invalid("epochs", c.Epochs, "the length of this run is given by iterations %d: set iterations instead",
			old.Iterations)
	}
	if to < from && !shorter {
		return Invalid(key, to, "the run has %v of them, and cannot become shorter: use another folder", from)
	}
	if c.EvalEpochs > 0 {
		c.EvalPoints = Default().EvalPoints // eval_epochs says how many
		return nil
	}
	if c.EvalPoints != old.EvalPoints {
		return nil // set; Continues checks it
	}
	count := min(old.EvalPoints, old.Iterations)
	points := float64(count) * to / from
	if points != math.Trunc(points) {
		part := from / float64(count)
		if old.Epochs == 0 {
			part = from / float64(gcd(count, old.Iterations))
		}
		return Invalid(key, to, "the run was evaluated at %d equal distances, and the next evaluations would lie "+
			"elsewhere: use a multiple of %.6g", count, part)
	}
	c.EvalPoints = int(points)
	return nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Lengthened reports whether the resolved configuration is old with another length and nothing
// else.
func (s *Setup) Lengthened(old Config) bool {
	old.Iterations, old.Epochs, old.EvalPoints = s.Config.Iterations, s.Config.Epochs, s.Config.EvalPoints
	return len(s.Config.Stored().Differences(old)) == 0
}

// Continues returns why a finished run of configuration old, whose length alone differs, cannot be
// continued to the length of s; nil if the longer run begins exactly as that one did.
func (s *Setup) Continues(old Config) error {
	c := s.Config
	count := s.evals.count(old.Iterations, old.EvalPoints)
	switch {
	case c.Iterations <= old.Iterations:
		return Invalid("iterations", c.Iterations, "the run has %d and cannot become shorter", old.Iterations)
	case s.Asynchronous():
		return Invalid("algo", c.Algo, "its agents ended at different times, and a longer run would have gone on at "+
			"each of them: train anew with iterations %d", c.Iterations)
	}
	if err := s.continuesSchedule(old.Iterations); err != nil {
		return err
	}
	for k := range count + 1 {
		was := old.Iterations // the last one
		switch {
		case k < count && c.EvalEpochs > 0:
			continue // the same distance
		case k < count:
			was = int(math.Round(float64(k) * float64(old.Iterations) / float64(count)))
		}
		if at := s.EvalPoint(k); at != was {
			return Invalid("iterations", c.Iterations, "evaluation %d would be at iteration %d, and was at %d: "+
				"choose a length that keeps the distance of the evaluations", k, at, was)
		}
	}
	if !slices.Contains(s.FingerprintsAt(old.Iterations), old.Fingerprint()) {
		advice := "train anew in another folder"
		if old.Epochs > 0 {
			advice = fmt.Sprintf("use a multiple of %v epochs, or ", old.Epochs) + advice
		}
		return Invalid("iterations", c.Iterations, "the checkpoint at iteration %d is of a run with epochs %v and "+
			"eval_points %d, and one of this length would have had epochs %v and eval_points %d there: %s",
			old.Iterations, old.Epochs, old.EvalPoints,
			s.epochsAt(old.Iterations), s.EvalsBefore(old.Iterations), advice)
	}
	return nil
}

// continuesSchedule refuses to continue a run of another length, all of whose iterations have
// passed, where the longer run had other step sizes in them, unless it is continued from before its
// decay.
func (s *Setup) continuesSchedule(length int) error {
	c := s.Config
	at, err := s.DiffersBefore(length, length)
	if err != nil || at == length || s.DecayStart() > 0 { // A checkpoint at the start of its decay is kept.
		return err
	}
	return Invalid("schedule", c.Schedule, "it led the step size to its end at iteration %d, and a run of %d "+
		"iterations would have had other step sizes from the start: train anew with that length, or with "+
		"decay_iterations", length, c.Iterations)
}

// epochsAt returns the value of epochs of a shorter run that ends at an iteration.
func (s *Setup) epochsAt(iteration int) float64 {
	return math.Round(s.Config.Epochs*float64(iteration)/float64(s.Config.Iterations)*1e9) / 1e9
}

// FingerprintsAt returns the fingerprints of the run and of shorter ones that ended at an
// iteration, one of which checkpoints of a run that was lengthened there have.
func (s *Setup) FingerprintsAt(iteration int) []string {
	short := s.Config.Stored()
	all := []string{short.Fingerprint(), short.FingerprintWithDevice()}
	if iteration <= 0 || iteration >= s.Config.Iterations {
		return all
	}
	last := s.EvalsBefore(iteration)
	if s.EvalPoint(last) != iteration {
		return all
	}
	short.Iterations, short.Epochs = iteration, s.epochsAt(iteration)
	points := []int{last}
	switch {
	case s.evals.every > 0:
		points = []int{s.evals.points(iteration)}
	case last == iteration: // evaluated at each iteration: eval_points may have been above them
		points = append(points, short.EvalPoints, Default().EvalPoints)
	}
	for _, short.EvalPoints = range points {
		all = append(all, short.Fingerprint(), short.FingerprintWithDevice())
	}
	return all
}
