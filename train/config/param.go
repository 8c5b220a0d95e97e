package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fspda/train/setting"
)

// Param is a setting of one algorithm, which Method.Params declares: a number, or a name of Choices.
// The configuration holds it below the key params, as in "params: {beta: 0.9}"; the flag is
// --param beta=0.9, and the key in a sweep or after --set is params.beta. It is part of the
// fingerprint and of config.yaml like any other key.
type Param = setting.Key

// Params are the values of an algorithm's own settings by name: numbers, or names. Treat a value as
// constant: configurations share it. Resolve adds the defaults of those that are not set.
type Params map[string]any

// String lists the values as in "beta=0.9,start=zero", sorted by name.
func (p Params) String() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(p)) {
		words = append(words, name+"="+setting.Text(p[name]))
	}
	return strings.Join(words, ",")
}

// Keys lists the keys of the values, such as params.beta, sorted.
func (p Params) Keys() (keys []string) {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		keys = append(keys, paramKey(name))
	}
	return keys
}

// Set adds values in the form of String to those that are there.
func (p *Params) Set(text string) error {
	added := Params{}
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form NAME=VALUE, such as beta=0.9", part)
		}
		added[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	*p = p.with(added)
	return nil
}

// Type is the name of the type in help texts.
func (Params) Type() string { return "name=value" }

// with returns a copy that has the values of more too.
func (p Params) with(more Params) Params {
	if len(more) == 0 {
		return p
	}
	sum := maps.Clone(p)
	if sum == nil {
		sum = Params{}
	}
	maps.Copy(sum, more)
	return sum
}

// paramKey is the key of one setting.
func paramKey(name string) string { return "params." + name }

// param returns a declared setting.
func (m Method) param(name string) (Param, bool) {
	at := slices.IndexFunc(m.Params, func(p Param) bool { return p.Name == name })
	if at < 0 {
		return Param{}, false
	}
	return m.Params[at], true
}

// checkParams refuses settings that no algorithm has, and values that the algorithm does not admit.
func (c Config) checkParams() (errs []error) {
	m, _ := c.findMethod()
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		if p, ok := m.param(name); ok {
			_, err := p.Value(paramKey(name), c.Params[name])
			errs = append(errs, err)
			continue
		}
		if len(withParam(name)) > 0 {
			continue // refused by its effect, where it was set for this run
		}
		want := fmt.Sprintf("algo %s has no parameters of its own", c.Algo)
		if len(m.Params) > 0 {
			var names, texts []string
			for _, p := range m.Params {
				names, texts = append(names, p.Name), append(texts, p.String())
			}
			want = fmt.Sprintf("the parameters of algo %s are %s", c.Algo, strings.Join(texts, "; "))
			want = setting.Suggestion(name, names) + want
		}
		errs = append(errs, &Error{Key: paramKey(name), Got: "does not exist", Want: want})
	}
	return errs
}

// withParam lists the algorithms that have a setting of their own of that name.
func withParam(name string) []string {
	return withFeature(func(m Method) bool { _, ok := m.param(name); return ok })
}

// settleParams keeps the settings of the method, and adds the defaults of those that are not set.
// Check has verified the values.
func (c Config) settleParams() Params {
	m, _ := c.findMethod()
	if len(m.Params) == 0 {
		return nil
	}
	all := Params{}
	for _, p := range m.Params {
		v, set := c.Params[p.Name]
		if !set {
			v = p.Initial()
		}
		if typed, err := p.Value(paramKey(p.Name), v); err == nil {
			v = typed
		}
		all[p.Name] = v
	}
	return all
}

// Param returns a number that the algorithm declares in Method.Params. It panics if that declares
// no number of this name.
func (s *Setup) Param(name string) float64 {
	switch v := s.Config.Params[name].(type) {
	case float64:
		return v
	case int:
		return float64(v)
	}
	panic(fmt.Sprintf("config: algo %s declares no parameter %q that is a number", s.Config.Algo, name))
}

// Choice returns a name that the algorithm declares in Method.Params. It panics if that declares no
// setting of this name with Choices.
func (s *Setup) Choice(name string) string {
	v, ok := s.Config.Params[name].(string)
	if !ok {
		panic(fmt.Sprintf("config: algo %s declares no parameter %q that is a name", s.Config.Algo, name))
	}
	return v
}

// ParamHelp lists the settings of all algorithms that have some of their own; empty if none has.
func ParamHelp() string {
	var lines []string
	registry.RLock()
	defer registry.RUnlock()
	for _, m := range methods {
		for _, p := range m.Params {
			lines = append(lines, m.Name+": "+p.String())
		}
	}
	return strings.Join(lines, "; ")
}
