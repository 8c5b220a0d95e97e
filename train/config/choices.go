package config

import (
	"slices"
	"strings"

	"fspda/dist"
	"fspda/internal/spelling"
)

// orAuto returns a function that lists auto, then the names.
func orAuto(names func() []string) func() []string {
	return func() []string { return append([]string{auto}, names()...) }
}

// forms returns a function that lists the names that dist knows for a key.
func forms(key string) func() []string { return func() []string { return dist.Forms(key) } }

// Choices lists the values of a key that are names, with their arguments as in er(p); nil for other
// keys.
func Choices(key string) []string {
	k, _ := Lookup(key)
	return k.Admitted()
}

// FoldNames spells the names among the values as their tables do: algo DSGD becomes dsgd, and graph
// ER(0.5) becomes er(0.5). Parse and Resolve call it.
func (c *Config) FoldNames() {
	for _, f := range c.fields() {
		if v, ok := f.Value.(*string); ok {
			*v = foldName(*v, f.Admitted())
		}
	}
}

func foldName(value string, choices []string) string {
	name := spelling.Name(value)
	same := func(equal func(a, b string) bool) int {
		return slices.IndexFunc(choices, func(form string) bool { return equal(spelling.Name(form), name) })
	}
	at := same(strings.EqualFold)
	switch {
	case at < 0 || same(func(a, b string) bool { return a == b }) >= 0:
		return value
	case strings.Contains(value, "("):
		return spelling.Name(choices[at]) + strings.TrimSpace(value[strings.Index(value, "("):])
	}
	return choices[at]
}

// aliases are names that other programs give to keys.
var aliases = map[string]string{"lr": "alpha", "learning_rate": "alpha", "workers": "agents", "nodes": "agents",
	"world_size": "agents", "topology": "graph", "dataset": "data", "batch_size": "batch", "algorithm": "algo"}

// Alias returns the key that another program calls by a name, or "".
func Alias(name string) string { return aliases[strings.ReplaceAll(name, "-", "_")] }
