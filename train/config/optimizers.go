package config

import (
	"fmt"
	"slices"
	"strings"

	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/setting"
)

// Optimizer describes one value of the key optimizer. Nothing else in the program compares the name
// of an optimizer: checks, defaults, help texts and the tables of the documentation read this row.
type Optimizer struct {
	Name string
	// Rule is the direction u for a gradient g in symbols, for the documentation. It may be empty.
	Rule string
	// New makes the optimizer of a setup, whose keys and tensors are resolved; nil: the direction is
	// the gradient, or the algorithm of the optimizer's only method makes it.
	New func(s *Setup) algo.Optimizer
	// Check refuses settings of the optimizer and returns warnings. It may be nil.
	Check func(s *Setup) (warnings []string, err error)

	// Keys lists the keys that it reads and that not every optimizer reads, such as beta1. The
	// others are refused if they are set.
	Keys   []string
	Params []Param // Params are settings that only this optimizer has; New reads them by Setup.Param.
	// Momentum is the value of the key momentum where that is 0; 0: it does not read the key.
	Momentum float64

	// General says that every method takes it that takes any optimizer. Others are taken by the
	// methods that name them.
	General bool
	// Adaptive says that it divides gradients by their size, so that it is not linear in them.
	Adaptive bool
	// UnitSteps says that the size of a step follows from alpha and not from the gradient, so that
	// language models have the step size of AdamW. Adaptive optimizers have it.
	UnitSteps bool
	// Decoupled says that weight decay is decoupled unless decay_form is set.
	Decoupled bool
	Nesterov  bool // Nesterov says that the direction looks ahead by the momentum.
	// LanguageAlpha is the step size of language models; 0: it has unit steps.
	LanguageAlpha float64
}

// The names of optimizers that methods declare.
const (
	optimizerHeavyBall = "heavy-ball"
	optimizerNesterov  = "nesterov"
	optimizerAdamW     = "adamw"
	optimizerGTAdam    = "gt-adam"
	optimizerDeMo      = "demo"
)

// optimizers is the table of optimizers. The first one is the default. A momentum without an
// optimizer chooses the first one that reads it.
var optimizers = []Optimizer{
	{Name: "sgd", Rule: "u = g", General: true, LanguageAlpha: 0.3},
	{Name: optimizerHeavyBall, Rule: "b ← μ·b + g, u = b",
		New:     func(s *Setup) algo.Optimizer { return algo.HeavyBall{Mu: s.Config.Momentum} },
		General: true, Momentum: 0.9, LanguageAlpha: 0.03},
	{Name: optimizerNesterov, Rule: "b ← μ·b + g, u = g + μ·b",
		New:     func(s *Setup) algo.Optimizer { return algo.Nesterov{Mu: s.Config.Momentum} },
		General: true, Momentum: 0.9, Nesterov: true, LanguageAlpha: 0.03},
	{Name: optimizerAdamW,
		Rule: "m ← β₁·m + (1−β₁)·g, v ← β₂·v + (1−β₂)·g², u = (m/(1−β₁ˢ)) / (√(v/(1−β₂ˢ)) + ε)",
		New: func(s *Setup) algo.Optimizer {
			return algo.AdamW{Beta1: s.Config.Beta1, Beta2: s.Config.Beta2, Eps: s.Config.Eps}
		},
		Keys: []string{"beta1", "beta2", "eps"}, General: true, Adaptive: true, UnitSteps: true, Decoupled: true},
	{Name: optimizerGTAdam, Rule: "m ← β₁·m + (1−β₁)·g, v ← min(β₂·v + (1−β₂)·g², 10⁶), u = m/√(v + ε)",
		New: func(s *Setup) algo.Optimizer {
			return algo.GTAdam{Beta1: s.Config.Beta1, Beta2: s.Config.Beta2, Eps: s.Config.Eps, Limit: meanSquareLimit}
		},
		Check: gtAdamDefined,
		Keys:  []string{"beta1", "beta2", "eps"}, Adaptive: true, UnitSteps: true},
	{Name: optimizerDeMo, Rule: "u is the sign of a momentum whose largest coefficients were averaged",
		UnitSteps: true, Decoupled: true},
}

// meanSquareLimit is the G of gt-adam.
const meanSquareLimit = 1e6

func gtAdamDefined(s *Setup) ([]string, error) {
	if c := s.Config; c.Beta2 == 0 {
		return nil, Invalid("beta2", c.Beta2, "%s keeps eps in the mean of squares, whose decay rate divides it: "+
			"expected above 0 and below 1", c.Optimizer)
	}
	return nil, nil
}

// RegisterOptimizer adds an optimizer to those that Config.Optimizer can name. Call it before the
// first run, for instance in an init function. It panics if a name is taken.
func RegisterOptimizer(o Optimizer) {
	registry.Lock()
	defer registry.Unlock()
	if o.Name == "" || slices.ContainsFunc(optimizers, func(p Optimizer) bool { return p.Name == o.Name }) {
		panic(fmt.Sprintf("config: RegisterOptimizer of %q: an optimizer needs a name that is not taken", o.Name))
	}
	if err := setting.Fault(o.Params); err != nil {
		panic(fmt.Sprintf("config: RegisterOptimizer of %q: %v", o.Name, err))
	}
	optimizers = append(optimizers, o)
}

// optimizersWith lists the optimizers for which has returns true, in the order of the table.
func optimizersWith(has func(o Optimizer) bool) (found []Optimizer) {
	registry.RLock()
	defer registry.RUnlock()
	for _, o := range optimizers {
		if has(o) {
			found = append(found, o)
		}
	}
	return found
}

// namesOf lists the names of optimizers.
func namesOf(list []Optimizer) (names []string) {
	for _, o := range list {
		names = append(names, o.Name)
	}
	return names
}

// Optimizers lists the names that Config.Optimizer can have besides auto.
func Optimizers() []string { return namesOf(optimizersWith(func(Optimizer) bool { return true })) }

// optimizerNamed returns the optimizer of a name, or the first one.
func optimizerNamed(name string) Optimizer {
	if found := optimizersWith(func(o Optimizer) bool { return o.Name == name }); len(found) > 0 {
		return found[0]
	}
	return optimizers[0]
}

// reads reports whether the optimizer reads a key that not every optimizer reads.
func (o Optimizer) reads(key string) bool {
	return slices.Contains(o.Keys, key) || key == "momentum" && o.Momentum > 0
}

// readers lists the optimizers that read a key.
func readers(key string) []string {
	return namesOf(optimizersWith(func(o Optimizer) bool { return o.reads(key) }))
}

// readersOf names the optimizers that read a key, and the methods that have one of their own, to
// complete "needs".
func readersOf(key string) string {
	reads := func(o Optimizer) bool { return o.reads(key) }
	return algosOrOptimizers(withFeature(func(m method) bool {
		return m.takesOne(func(o Optimizer) bool { return reads(o) && !o.General })
	}), namesOf(optimizersWith(func(o Optimizer) bool { return reads(o) && o.General })))
}

// optimizerKeys lists the keys that only some optimizers read, besides momentum.
func optimizerKeys() (keys []string) {
	for _, o := range optimizersWith(func(Optimizer) bool { return true }) {
		for _, key := range o.Keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// OptimizerTable is the table of all optimizers as Markdown.
func OptimizerTable() string {
	var b strings.Builder
	b.WriteString("\n| `optimizer` | settings (default) | direction | vectors | a step is as long as | `decay_form: auto` | " +
		"methods |\n|---|---|---|---|---|---|---|\n")
	s := &Setup{Config: resolving(Default())}
	for _, o := range optimizersWith(func(Optimizer) bool { return true }) {
		vectors, length, decay, of := 0, "the gradient", decayCoupled, "any"
		if o.New != nil {
			vectors = len(o.New(s).Vectors())
		}
		if o.UnitSteps {
			length = "alpha"
		}
		if o.Decoupled {
			decay = decayDecoupled
		}
		if !o.General {
			of = "`" + setting.Either(withFeature(func(m method) bool { return m.takes(o.Name) })) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d | %s | `%s` | %s |\n", o.Name, o.settings(), o.Rule, vectors, length,
			decay, of)
	}
	return b.String() + "\n"
}

// helpWords returns the function that puts lists of names into the help text of a key: of algorithms,
// of the optimizers that every method takes and of the others, of those that read the key, and of
// those with decoupled weight decay, of compressors by what they send, and of graphs.
func helpWords() func(key, help string) string {
	list := func(has func(o Optimizer) bool) string { return setting.Either(namesOf(optimizersWith(has))) }
	compressors := func(has func(k dist.CompressorKind) bool) string {
		var specs []string
		for _, k := range dist.CompressorsThat(has) {
			specs = append(specs, k.Usual())
		}
		return strings.Join(specs, ", ")
	}
	sends := func(content dist.Content) string {
		return compressors(func(k dist.CompressorKind) bool { return k.Sends == content })
	}
	common := strings.NewReplacer("GRAPHS", strings.Join(dist.GraphExamples(), ", "), "VALUES", sends(dist.Values),
		"COEFFICIENTS", sends(dist.Coefficients), "CODES", sends(dist.Codes),
		"NORMS", compressors(func(k dist.CompressorKind) bool { return k.Norms }),
		"ALGORITHMS", strings.Join(Algorithms(), ", "),
		"GENERAL", list(func(o Optimizer) bool { return o.General }),
		"OTHERS", list(func(o Optimizer) bool { return !o.General }),
		"DECOUPLED", both(namesOf(optimizersWith(func(o Optimizer) bool { return o.Decoupled }))))
	return func(key, help string) string {
		if rest, ok := strings.CutPrefix(help, "READERS"); ok {
			return strings.Join(readers(key), ", ") + rest
		}
		return common.Replace(help)
	}
}

// settings lists the keys and parameters that the optimizer reads, with their defaults.
func (o Optimizer) settings() string {
	var words []string
	if o.Momentum > 0 {
		words = append(words, fmt.Sprintf("`momentum` (%v)", o.Momentum))
	}
	for _, key := range o.Keys {
		words = append(words, fmt.Sprintf("`%s` (%s)", key, defaultText(key)))
	}
	for _, p := range o.Params {
		words = append(words, fmt.Sprintf("`%s` (%s)", p.Name, setting.Text(p.Initial())))
	}
	return strings.Join(words, ", ")
}
