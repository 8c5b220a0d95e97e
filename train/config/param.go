package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fspda/train/setting"
)

// Param is a setting of one algorithm, which Method.Params declares: a number, or a name of
// Choices. The configuration holds it below the key params, as in "params: {beta: 0.9}". Its flag
// is --param beta=0.9, and its key in a sweep or after --set is params.beta. It is part of the
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

// ownParams lists the settings of the algorithm's own, then the optimizer's.
func (c Config) ownParams() []Param {
	m, _ := c.findMethod()
	return slices.Concat(m.Params, c.optimizerOf(m).Params)
}

// declares reports whether a setting of a name is among params.
func declares(params []Param, name string) bool {
	return slices.ContainsFunc(params, func(p Param) bool { return p.Name == name })
}

// checkParams refuses settings that no algorithm has, and values that the algorithm does not admit.
func (c Config) checkParams() (errs []error) {
	own := c.ownParams()
	for _, name := range slices.Sorted(maps.Keys(c.Params)) {
		if at := slices.IndexFunc(own, func(p Param) bool { return p.Name == name }); at >= 0 {
			_, err := own[at].Value(paramKey(name), c.Params[name])
			errs = append(errs, err)
			continue
		}
		if withParam(name) != "" {
			continue // refused by its effect, where it was set for this run
		}
		want := fmt.Sprintf("algo %s has no parameters of its own", c.Algo)
		if len(own) > 0 {
			var names, texts []string
			for _, p := range own {
				names, texts = append(names, p.Name), append(texts, p.String())
			}
			want = fmt.Sprintf("the parameters of algo %s are %s", c.Algo, strings.Join(texts, "; "))
			want = setting.Suggestion(name, names) + want
		}
		errs = append(errs, &Error{Key: paramKey(name), Got: "does not exist", Want: want})
	}
	return errs
}

// withParam says which algorithms and optimizers have a setting of their own of that name, as in
// "algo diloco or noloco"; empty: none.
func withParam(name string) string {
	methods := withFeature(func(m method) bool { return declares(m.Params, name) })
	return algosOrOptimizers(methods, namesOf(optimizersWith(func(o Optimizer) bool {
		return declares(o.Params, name)
	})))
}

// algosOrOptimizers names values of the keys algo and optimizer, to complete "needs".
func algosOrOptimizers(methods, optimizers []string) string {
	var words []string
	if len(optimizers) > 0 {
		words = append(words, "optimizer "+setting.Either(optimizers))
	}
	if len(methods) > 0 {
		words = append(words, "algo "+setting.Either(methods))
	}
	return strings.Join(words, ", or ")
}

// settleParams keeps the settings of the method and the optimizer, and adds the defaults of those
// that are not set. Check has verified the values.
func (c Config) settleParams() Params {
	return settle(c.ownParams(), c.Params)
}

// coveredParams is settleParams without the defaults of settings that a later version brought:
// configurations that were stored before have the same trajectory.
func (c Config) coveredParams() Params {
	all := c.settleParams()
	for _, p := range c.ownParams() {
		if p.Since != "" && setting.Text(all[p.Name]) == setting.Text(p.Initial()) {
			delete(all, p.Name)
		}
	}
	return all
}

// settle returns the values of settings with the defaults of those that are not given.
func settle(own []Param, given Params) Params {
	if len(own) == 0 {
		return nil
	}
	all := Params{}
	for _, p := range own {
		v, set := given[p.Name]
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

// paramHelp is the last text of ParamHelp, for the number of methods and optimizers that there
// were.
var paramHelp struct {
	methods, optimizers int
	text                string
}

// ParamHelp lists the settings of all algorithms and optimizers that have some of their own; empty
// if none has.
func ParamHelp() string {
	registry.Lock()
	defer registry.Unlock()
	h := &paramHelp
	if h.methods == len(methods) && h.optimizers == len(optimizers) {
		return h.text
	}
	var lines []string
	for _, m := range methods {
		for _, p := range m.Params {
			lines = append(lines, m.Name+": "+p.String())
		}
	}
	for _, o := range optimizers {
		for _, p := range o.Params {
			lines = append(lines, o.Name+": "+p.String())
		}
	}
	h.methods, h.optimizers, h.text = len(methods), len(optimizers), strings.Join(lines, "; ")
	return h.text
}
