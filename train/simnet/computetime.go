package simnet

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"fspda/internal/rng"
	"fspda/internal/spelling"
)

// Distribution draws a compute time of mean 1.
type Distribution func(s *rng.Stream) float64

// ComputeTimes are the times of the agents' gradients: agent i takes Mean[i] times a draw of the
// Distribution.
type ComputeTimes struct {
	Distribution Distribution
	Mean         []float64
}

// Multiplied returns the times of k gradients in sequence.
func (c ComputeTimes) Multiplied(k int) ComputeTimes {
	if k == 1 {
		return c
	}
	c.Mean = slices.Clone(c.Mean)
	for i := range c.Mean {
		c.Mean[i] *= float64(k)
	}
	return c
}

// ParseDistribution reads constant, exp, uniform or lognormal(sigma).
func ParseDistribution(spec string) (Distribution, error) {
	name, arg, err := nameAndNumber(spec)
	switch {
	case err != nil:
	case name == "lognormal" && arg > 0:
		return func(s *rng.Stream) float64 { return math.Exp(float64(arg*s.Norm()) - float64(arg*arg/2)) }, nil
	case !math.IsNaN(arg):
	case name == "constant":
		return func(*rng.Stream) float64 { return 1 }, nil
	case name == "exp":
		return func(s *rng.Stream) float64 { return s.Exp() }, nil
	case name == "uniform":
		return func(s *rng.Stream) float64 { return 0.5 + s.Float64() }, nil
	}
	return nil, fmt.Errorf("%sexpected constant, exp, uniform (0.5 to 1.5) or lognormal(sigma) with sigma above 0",
		suggest(spec, Distributions()))
}

// ParseSlowness reads equal, linear(f), straggler(f) or random(f), and returns for each of n agents
// the factor of its compute times. The seed draws the factors of random.
func ParseSlowness(spec string, n int, seed uint64) ([]float64, error) {
	name, most, err := nameAndNumber(spec)
	slow := slices.Repeat([]float64{1}, n)
	if err == nil && name == "equal" && math.IsNaN(most) {
		return slow, nil
	}
	if err != nil || !(most >= 1) || !slices.Contains([]string{"linear", "straggler", "random"}, name) {
		return nil, fmt.Errorf("%sexpected equal, or with a number of at least 1: linear(f) (1 to f, in the order "+
			"of the agents), straggler(f) (the last one), random(f) (1 to f)", suggest(spec, Slownesses()))
	}
	s := rng.New(seed, "async-slowness")
	for i := range slow {
		switch name {
		case "linear":
			slow[i] = 1 + (most-1)*float64(i)/float64(max(1, n-1))
		case "random":
			slow[i] = math.Pow(most, s.Float64())
		}
	}
	if name == "straggler" {
		slow[n-1] = most
	}
	return slow, nil
}

// Distributions lists the forms that ParseDistribution reads.
func Distributions() []string { return []string{"constant", "exp", "uniform", "lognormal(sigma)"} }

// Slownesses lists the forms that ParseSlowness reads.
func Slownesses() []string { return []string{"equal", "linear(f)", "straggler(f)", "random(f)"} }

// suggest suggests the form whose name is similar to the name in a spec, if the spec is misspelled.
func suggest(spec string, forms []string) string {
	if near := spelling.NearestForm(spec, forms); near != "" {
		return "did you mean " + near + "? "
	}
	return ""
}

// nameAndNumber splits "name" or "name(number)". The number of the first form is NaN.
func nameAndNumber(spec string) (name string, v float64, err error) {
	name, arg, hasArg, err := spelling.Split(spec)
	if err != nil || !hasArg {
		return name, math.NaN(), err
	}
	v, err = strconv.ParseFloat(arg, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return "", 0, fmt.Errorf("%q is not of the form name(number)", spec)
	}
	return name, v, nil
}
