package config

import (
	"fmt"
	"slices"
	"strings"

	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/setting"
)

// Optimizer declares a value of the key optimizer.
type Optimizer = algo.OptimizerKind

var optimizers = algo.Optimizers()

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

// reads reports whether an optimizer reads a key that not every optimizer reads.
func reads(o Optimizer, key string) bool {
	return slices.Contains(o.Keys, key) || key == "momentum" && o.Momentum > 0
}

func readers(key string) []string {
	return namesOf(optimizersWith(func(o Optimizer) bool { return reads(o, key) }))
}

// readersOf names the optimizers that read a key, and the methods that have one of their own, to
// complete "needs".
func readersOf(key string) string {
	return algosOrOptimizers(withFeature(func(m method) bool {
		return m.takesOne(func(o Optimizer) bool { return reads(o, key) && !o.General })
	}), namesOf(optimizersWith(func(o Optimizer) bool { return reads(o, key) && o.General })))
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

// helpWords returns the function that puts lists of names into the help text of a key: of
// algorithms, of the optimizers that every method takes and of the others, of those that read the
// key, and of those with decoupled weight decay, of compressors by what they send, and of graphs.
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
	words := []string{"GRAPHS", strings.Join(dist.GraphExamples(), ", "), "VALUES", sends(dist.Values),
		"COEFFICIENTS", sends(dist.Coefficients), "CODES", sends(dist.Codes),
		"NORMS", compressors(func(k dist.CompressorKind) bool { return k.Norms }),
		"ALGORITHMS", strings.Join(Algorithms(), ", "),
		"GENERAL", list(func(o Optimizer) bool { return o.General }),
		"OTHERS", list(func(o Optimizer) bool { return !o.General }),
		"DECOUPLED", both(namesOf(optimizersWith(func(o Optimizer) bool { return o.Decoupled })))}
	common := strings.NewReplacer(words...)
	return func(key, help string) string {
		if rest, ok := strings.CutPrefix(help, "READERS"); ok {
			return strings.Join(readers(key), ", ") + rest
		}
		for i := 0; i < len(words); i += 2 {
			if strings.Contains(help, words[i]) { // faster than to replace none
				return common.Replace(help)
			}
		}
		return help
	}
}
