package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fspda/data"
	"fspda/dist"
	"fspda/train/setting"
)

// question asks the conditions of keys about a setup that was resolved from given; s is nil before
// it is.
type question struct {
	s     *Setup
	given Config
}

func (q question) Given(key string) any { return q.given.Value(key) }

func (q question) Value(key string) any {
	if q.s == nil {
		return q.Given(key)
	}
	return q.s.Value(key)
}

// needs is a condition on the values that the user gave.
func needs(words string, holds func(c Config) bool) setting.Need {
	return setting.Need{Words: words, Holds: func(r setting.Run) bool { return holds(r.(question).given) }}
}

// needsRun is a condition on the run, too.
func needsRun(words string, holds func(s *Setup, given Config) bool) setting.Need {
	return setting.Need{Words: words, Holds: func(r setting.Run) bool {
		q := r.(question)
		return holds(q.s, q.given)
	}}
}

const (
	drawnTimes = "algo fspda-async without links and with clock virtual"
	anExchange = "two agents or more, and an algorithm that exchanges over a graph"
)

// Conditions of several keys.
var (
	drawnData = needs("data synthetic, synthetic-images or synthetic-text",
		func(c Config) bool { return !slices.Contains(data.FileSets(), c.Data) && c.Data != external })
	imagesOfAnySize = needs("data imagenet, folder or synthetic-images",
		func(c Config) bool { return !data.HasFixedSize(c.Data) && c.Data != external })
	needsText   = needsRun("data text or synthetic-text", (*Setup).readsText)
	needsCosine = needsSchedule(scheduleCosine)
	needsFall   = needs("schedule cosine, linear or wsd", func(c Config) bool {
		return slices.Contains([]string{scheduleCosine, scheduleLinear, scheduleWSD}, c.Schedule)
	})
	needsEnd = needs("schedule cosine or linear", func(c Config) bool {
		return c.Schedule == scheduleCosine || c.Schedule == scheduleLinear
	})
	needsExchange    = needsRun(anExchange, func(s *Setup, _ Config) bool { return s.exchanges() })
	needsDifferences = needsRun("an algorithm with iterations whose agents exchange whole or masked vectors, not "+
		"compressed, over edges of a graph", func(s *Setup, _ Config) bool { return s.sendsVectors() })
	needsRealTime = needsRun("clock real", func(s *Setup, _ Config) bool { return s.RealTime() })
	needsNorms    = setting.Need{Says: normsWords, Holds: func(r setting.Run) bool {
		kind, _ := dist.CompressorNamed(r.Given("compress").(string))
		return kind.Norms
	}}
	needsBatchNorm = needsRun("a network with batch norm", func(s *Setup, _ Config) bool { return len(s.Buffers) > 0 })
)

// needsSchedule is the condition that the run has a schedule.
func needsSchedule(name string) setting.Need {
	return needs("schedule "+name, func(c Config) bool { return c.Schedule == name })
}

// normsWords names the compressors that send norms.
func normsWords() string {
	return "compress " + setting.Either(dist.FormsOf(dist.CompressorsThat(func(k dist.CompressorKind) bool {
		return k.Norms
	})))
}

// readsText reports whether the data set is text.
func (s *Setup) readsText(c Config) bool { return IsText(c.Data) || s.Set.Text != nil }

// exchanges reports whether the agents send anything over edges of a graph.
func (s *Setup) exchanges() bool {
	return !s.Traits.Edges.Collective && s.Graph.N > 1
}

// sendsVectors reports whether both ends of an edge send the same coordinates of their vectors.
func (s *Setup) sendsVectors() bool {
	return s.exchanges() && s.Compressor == nil && s.Lattice == nil && s.Directed() == nil && !s.Asynchronous() &&
		s.Traits.MessageLen == 0 && !s.Traits.Tree
}

// masked reports whether the agents send vectors on which a mask could be.
func (s *Setup) masked() bool {
	return s.exchanges() || s.AllReduces() && s.Traits.Masks && s.Graph.N > 1
}

// drawsTimes reports whether times of gradients are drawn: in virtual time, and to choose eta.
func (s *Setup) drawsTimes(c Config) bool {
	return s.Asynchronous() && s.Links == nil && (!s.RealTime() || c.Eta.Auto)
}

// uses reports whether the algorithm of s lists a key, or its traits imply the key.
func (s *Setup) uses(key string) bool { return s.method.uses(key) }

func (m method) uses(key string) bool {
	switch key {
	case "eta":
		return m.traits.Dual
	case "mixing":
		return m.traits.Mixing
	}
	return slices.Contains(m.keys(), key)
}

// Unused is a key that has no effect on a run.
type Unused struct {
	Key   string
	Value string
	Needs string // The conditions under which it has an effect, to complete "needs".
}

// Error returns the refusal of the key in a run, or in several, as where says.
func (u Unused) Error(where string) error {
	return &Error{Key: u.Key, Got: u.Value, Want: fmt.Sprintf("has no effect on %s: it needs %s; leave it out, or "+
		"choose what uses it", where, u.Needs)}
}

// Unused lists the keys that have no effect on the setup that was resolved from given.
func (s *Setup) Unused(given Config) []Unused {
	return s.unusedAmong(given, func(string) bool { return true })
}

func (s *Setup) unusedAmong(given Config, keys func(name string) bool) (all []Unused) {
	for _, name := range slices.Sorted(maps.Keys(given.Params)) {
		if _, ok := s.Config.Params[name]; !ok && keys(paramKey(name)) {
			all = append(all, Unused{paramKey(name), setting.Text(given.Params[name]), withParam(name)})
		}
	}
	for _, f := range given.fields() {
		if !keys(f.Name) {
			continue
		}
		if needs := s.missing(f.Name, given); needs != "" {
			all = append(all, Unused{f.Name, f.Text(), needs})
		}
	}
	return all
}

// RefuseUnused refuses keys of data, network and device that were set explicitly and have no effect
// where a model is used and not trained.
func (c Config) RefuseUnused(keys []string) error {
	var errs []error
	s := &Setup{Config: resolving(c)} // the conditions of these keys ask for nothing else
	for _, f := range c.fields() {
		if !slices.Contains(keys, f.Name) || !slices.Contains(c.explicit, f.Name) {
			continue
		}
		if needs := s.missing(f.Name, c); needs != "" {
			errs = append(errs, Unused{f.Name, f.Text(), needs}.Error("this command"))
		}
	}
	return errors.Join(errs...)
}

// missing returns the condition under which a key would have an effect; empty if it has one.
func (s *Setup) missing(key string, given Config) string {
	if !s.uses(key) {
		if methods := withFeature(func(m method) bool { return m.uses(key) }); len(methods) > 0 {
			return "algo " + setting.Either(methods)
		}
	}
	if networks := modelsWith(key); len(networks) > 0 && !slices.Contains(networks, given.Model) {
		return "model " + setting.Either(networks)
	}
	if slices.Contains(optimizerKeys(), key) && !reads(s.Config.optimizer(), key) {
		return readersOf(key)
	}
	k, _ := Lookup(key)
	for _, n := range k.Needs {
		if !n.Holds(question{s, given}) {
			return n.Text()
		}
	}
	return ""
}

// Effective lists the keys that have an effect on the setup that was resolved from given, with
// their resolved values. Setups of equal lists are the same run.
func (s *Setup) Effective(given Config) string {
	var b strings.Builder
	resolved := s.Config.Stored()
	for _, f := range resolved.fields() {
		if s.missing(f.Name, given) == "" {
			fmt.Fprintf(&b, "%s=%s\n", f.Name, f.Text())
		}
	}
	return b.String()
}

// refuseUnused refuses the keys that were set explicitly and have no effect.
func (s *Setup) refuseUnused(given Config) error {
	var errs []error
	for _, u := range s.unusedAmong(given, func(key string) bool { return slices.Contains(given.explicit, key) }) {
		errs = append(errs, u.Error("this run"))
	}
	return errors.Join(errs...)
}

// SetExplicit marks keys as set by the user, by flag or in a file: Resolve refuses them if they
// have no effect on the run. Parse marks the keys that it reads.
func (c *Config) SetExplicit(keys ...string) {
	c.explicit = slices.Clone(c.explicit) // other configurations share it
	for _, key := range keys {
		if !slices.Contains(c.explicit, key) {
			c.explicit = append(c.explicit, key)
		}
	}
}

// TakeExplicit returns the keys that are marked, and unmarks them.
func (c *Config) TakeExplicit() []string {
	keys := c.explicit
	c.explicit = nil
	return keys
}

// FindData chooses the data set by the files of data_dir, if data was not set.
func (c *Config) FindData() error {
	if c.DataDir == "" || !slices.Contains(c.explicit, "data_dir") || slices.Contains(c.explicit, "data") ||
		c.Data != Default().Data && c.Data != c.Defaults().Data {
		return nil
	}
	found := data.Recognize(c.DataDir)
	if _, reads := c.language(); reads && found == "" {
		found = dataText
	}
	if found == "" {
		return Invalid("data_dir", c.DataDir, "no data set is set, and the names of the files match none: add data, "+
			"which is %s", setting.Either(data.FileSets()))
	}
	c.Data = found
	return nil
}

// Explicit lists the keys that are marked.
func (c Config) Explicit() []string { return slices.Clone(c.explicit) }
