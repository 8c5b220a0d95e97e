package setting

import (
	"strings"
	"testing"
)

// A key of each type reads what its flag and its file say, and refuses the rest in words.
func TestKeyTypes(t *testing.T) {
	for _, c := range []struct {
		key  Key
		text any
		want any    // of the type of the key; nil: refused
		says string // in the refusal
	}{
		{Key{Name: "beta", Default: 1, Range: "(0, 1]"}, "0.5", 0.5, ""},
		{Key{Name: "beta", Default: 1, Range: "(0, 1]", Help: "share"}, 0, nil,
			"beta 0: expected a number in (0, 1]: share"},
		{Key{Name: "beta", Default: 1, Range: "(0, 1]", Want: "a share"}, 1e-60, nil,
			"it is 0 in single precision, in which networks train: expected a share"},
		{Key{Name: "shift", Help: "any"}, "NaN", nil, "expected a finite number: any"},
		{Key{Name: "steps", Default: 4, Whole: true, Range: "[1, inf)"}, "1e1", 10, ""},
		{Key{Name: "steps", Default: 4, Whole: true, Want: "at least 1", Range: "[1, inf)"}, 0.5, nil, "at least 1"},
		{Key{Name: "early", Default: false}, "true", true, ""},
		{Key{Name: "early", Default: false, Help: "first"}, "perhaps", nil, "expected true or false: first"},
		{Key{Name: "seed", Default: uint64(1)}, uint64(1<<63 + 5), uint64(1<<63 + 5), ""},
		{Key{Name: "rho", Default: AutoFloat{Auto: true}}, "auto", AutoFloat{Auto: true}, ""},
		{Key{Name: "rho", Default: AutoFloat{Auto: true}, Range: "(0, inf)"}, -1, nil,
			"expected a number in (0, inf), or auto"},
		{Key{Name: "order", Choices: []string{"cta", "atc"}}, "ctb", nil, "did you mean cta?"},
		{Key{Name: "graph", Default: "ring", Names: func() []string { return []string{"ring", "er(p)"} }, Forms: true},
			"er(0.3)", "er(0.3)", ""},
		{Key{Name: "even", Whole: true, Check: func(key string, v any) error {
			if v.(int)%2 != 0 {
				return Invalid(key, v, "expected an even number")
			}
			return nil
		}}, 3, nil, "even 3: expected an even number"},
	} {
		got, err := c.key.Value(c.key.Name, c.text)
		if c.want != nil && (err != nil || got != c.want) {
			t.Errorf("%s %v: %v (%T), %v; want %v", c.key.Name, c.text, got, got, err, c.want)
		}
		if c.want == nil && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s %v: error %v, want %q", c.key.Name, c.text, err, c.says)
		}
		if err := Fault([]Key{c.key}); err != nil {
			t.Errorf("%s: %v", c.key.Name, err)
		}
	}
}

// given is a run of values that were given and resolve to themselves.
type given map[string]any

func (g given) Given(key string) any { return g[key] }
func (g given) Value(key string) any { return g[key] }

func TestIs(t *testing.T) {
	need := Is("swarm", "nonblocking", "none")
	if need.Words != "swarm nonblocking or none" || !need.Holds(given{"swarm": "none"}) ||
		need.Holds(given{"swarm": "blocking"}) {
		t.Error(need.Words)
	}
}
