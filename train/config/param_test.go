package config

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"fspda/train/algo"
	"fspda/train/setting"
)

// withMethods registers methods for the time of a test.
func withMethods(t *testing.T, more ...Method) {
	t.Helper()
	registry.RLock()
	before := slices.Clone(methods)
	registry.RUnlock()
	t.Cleanup(func() {
		registry.Lock()
		methods = before
		registry.Unlock()
	})
	for _, m := range more {
		if m.New == nil {
			m.New = func(algo.Settings) algo.Algorithm { return algo.DSGD{} }
		}
		Register(m)
	}
}

// mine declares one parameter of each kind, and other one more.
var (
	mine = Method{Name: "mine", Params: []Param{
		{Name: "beta", Help: "share kept of the direction", Default: 0.9, Range: "[0, 1)"},
		{Name: "rounds", Help: "local rounds", Default: 4, Range: "[1, inf)", Whole: true},
		{Name: "start", Help: "first direction", Choices: []string{"gradient", "zero"}},
		{Name: "shift", Help: "any number"}}}
	other = Method{Name: "other", Params: []Param{{Name: "kept", Help: "kept", Default: 2}}}
)

// The values of a method's own settings reach it from a file, from dotted keys and in Go, with the
// defaults of those that are not set; the resolved configuration holds all of them, and replays.
func TestParams(t *testing.T) {
	withMethods(t, mine, other)
	for text, want := range map[string]string{
		"{algo: mine}": "beta=0.9,rounds=4,shift=0,start=gradient",
		"{algo: mine, params: {beta: 0.5, start: zero}}":      "beta=0.5,rounds=4,shift=0,start=zero",
		"{algo: mine, params: {}, params.rounds: 7}":          "beta=0.9,rounds=7,shift=0,start=gradient",
		"params.shift: -1e-5\nalgo: mine\nparams: {beta: 0}":  "beta=0,rounds=4,shift=-1e-05,start=gradient",
		"{algo: mine, params: null}":                          "beta=0.9,rounds=4,shift=0,start=gradient",
		"{algo: other}":                                       "kept=2",
		"{algo: dsgd}":                                        "",
		"{algo: mine, params: {beta: '0.25', rounds: 1.0e1}}": "beta=0.25,rounds=10,shift=0,start=gradient",
	} {
		c := small()
		if err := c.Parse("run.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		s, m := resolve(t, c)
		if got := s.Config.Params.String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		own := s.settings()
		if c.Algo == "mine" && (own.Param("beta") >= 1 || own.Param("rounds") < 1 || own.Choice("start") == "") {
			t.Errorf("%s: the setup lacks a value", text)
		}
		back := Default()
		if err := back.Parse("config.yaml", s.Config.Stored().YAML()); err != nil {
			t.Fatal(err)
		}
		if d := back.Differences(s.Config.Stored()); len(d) > 0 ||
			back.Fingerprint() != s.Config.Stored().Fingerprint() ||
			back.Params.String() != want {
			t.Errorf("%s: read back as %s, %v", text, back.Params, d)
		}
		if _, err := back.Resolve(labSet, m); err != nil {
			t.Errorf("%s: a resolved configuration does not replay: %v", text, err)
		}
	}
	c := small()
	c.Algo, c.Params = "mine", Params{"rounds": 3}
	if s, _ := resolve(t, c); s.settings().Param("rounds") != 3 || len(c.Params) != 1 {
		t.Errorf("%v, %v", s.Config.Params, c.Params)
	}
}

// Values, names and places that are wrong are refused with the declaration.
func TestParamsRefuses(t *testing.T) {
	withMethods(t, mine, other)
	for text, words := range map[string]string{
		"{algo: mine, params: {beta: 1}}":      "params.beta 1: expected a number in [0, 1): share kept",
		"{algo: mine, params: {beta: .nan}}":   "params.beta NaN: expected a number in [0, 1)",
		"{algo: mine, params: {beta: [1]}}":    "params.beta [1]: expected a number in [0, 1)",
		"{algo: mine, params: {shift: .inf}}":  "params.shift +Inf: expected a finite number",
		"{algo: mine, params: {rounds: 1.5}}":  "params.rounds 1.5: expected a whole number in [1, inf)",
		"{algo: mine, params: {start: zeros}}": "did you mean zero?",
		"{algo: mine, params: {bta: 0.5}}": "params.bta does not exist: did you mean beta? the " +
			"parameters of",
		"{algo: dsgd, params: {bta: 0.5}}": "algo dsgd has no parameters of its own",
		"{algo: dsgd, params: {beta: 0.5}}": "params.beta 0.5: has no effect on this run: it needs " +
			"algo mine",
		"{algo: other, params: {kept: 1, rounds: 40}}": "params.rounds 40: has no effect on this run: it needs " +
			"algo mine",
		"{algo: mine, params: 0.9}": "params 0.9: expected the names and values",
	} {
		c := small()
		err := c.Parse("run.yaml", []byte(text))
		if err == nil {
			_, err = c.Resolve(labSet, labModel(t, c))
		}
		if _, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", text, err, words)
		}
	}
	for name, bad := range map[string]Param{
		"name": {Name: "Beta"}, "no " +
			"name": {}, "range": {Name: "a", Range: "0..1"}, "order": {Name: "a", Range: "[1, 0]"},
		"default": {Name: "a", Range: "(0, 1]"}, "twice": mine.Params[0],
	} {
		m := Method{Params: []Param{mine.Params[0], bad}}
		if setting.Fault(m.Params) == nil {
			t.Errorf("%s: %+v is accepted", name, bad)
		}
	}
	for _, m := range builtin {
		if err := setting.Fault(m.Params); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

// A value changes the fingerprint, a default that is written out does not, and configurations that
// share values do not change each other's.
func TestParamsFingerprint(t *testing.T) {
	withMethods(t, mine)
	base := small()
	base.Algo, base.Params = "mine", Params{"beta": 0.5}
	before := maps.Clone(base.Params)
	c := base
	if err := c.Params.Set("rounds=4, beta=0.50"); err != nil {
		t.Fatal(err)
	}
	if c.Fingerprint() != base.Fingerprint() || len(c.Differences(base)) > 0 {
		t.Errorf("%v and %v differ: %v", c.Params, base.Params, c.Differences(base))
	}
	if err := c.Parse("sweep", []byte("params.beta: 0.25")); err != nil {
		t.Fatal(err)
	}
	if d := c.Differences(base); c.Fingerprint() == base.Fingerprint() || len(d) != 1 ||
		!strings.Contains(d[0], "beta=0.5,") {
		t.Errorf("differences %q", d)
	}
	if !maps.Equal(base.Params, before) {
		t.Errorf("%v became %v", before, base.Params)
	}
	if err := c.Params.Set("beta"); err == nil || !strings.Contains(err.Error(), "NAME=VALUE") {
		t.Errorf("error %v", err)
	}
	withMethods(t, other)
	help := ParamHelp()
	if !strings.Contains(help, "mine: rounds (a whole number in [1, inf), default 4): local rounds") ||
		!strings.Contains(help, "other: kept (a finite number, default 2): kept") {
		t.Error(help)
	}
}
