package config

import (
	"strconv"
	"strings"

	"fspda/train/algo"
)

// Factor is the step size of the tensors that a pattern matches, relative to alpha.
type Factor struct {
	Pattern string
	Factor  float64
}

// Frozen lists the patterns of the key freeze.
func (k ScheduleKeys) Frozen() []string { return split(k.Freeze) }

// Factors lists the factors of the key layer_lr, which Check has accepted.
func (k ScheduleKeys) Factors() []Factor {
	all, _ := parseFactors("layer_lr", k.LayerLR)
	return all
}

// split divides a list at its commas.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// someNames refuses a list that is not empty and names nothing.
func someNames(key string, value any) error {
	if list := value.(string); list != "" && len(split(list)) == 0 {
		return Invalid(key, list, "expected names, comma separated; leave it out to name none")
	}
	return nil
}

// checkFactors refuses texts that parseFactors cannot read.
func checkFactors(key string, value any) error {
	_, err := parseFactors(key, value.(string))
	return err
}

// parseFactors reads PATTERN=FACTOR, comma separated.
func parseFactors(key, list string) (all []Factor, err error) {
	if err := someNames(key, list); err != nil {
		return nil, err
	}
	for _, part := range split(list) {
		pattern, text, ok := strings.Cut(part, "=")
		f, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil || !(f > 0 && f <= 1e6) {
			return nil, Invalid(key, part, "expected PATTERN=FACTOR with a factor above 0 and at most 1e6, as "+
				"layer4=0.1; freeze is for 0")
		}
		all = append(all, Factor{pattern, f})
	}
	return all, nil
}

// admitFreeze refuses frozen coordinates for algorithms that would move them.
func (s *Setup) admitFreeze() error {
	c := &s.Config
	if c.Freeze == "" {
		return nil
	}
	switch {
	case s.Traits.Shifts:
		return Invalid("freeze", c.Freeze, "%s moves coordinates on which all agents agree, by rounding or more, and "+
			"with them frozen ones: choose another algorithm", c.Algo)
	case s.Traits.Code == algo.CompressedCode:
		return Invalid("freeze", c.Freeze,
			"%s sends compressed differences, and would move frozen coordinates by what its messages lack: choose "+
				"another algorithm", c.Algo)
	case s.Lattice != nil:
		return Invalid("freeze", c.Freeze, "%s rounds what it averages to %s, and would move frozen coordinates: use "+
			"compress identity, or another algorithm", c.Algo, c.Compress)
	}
	return nil
}
