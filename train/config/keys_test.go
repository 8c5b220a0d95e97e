package config

import (
	"slices"
	"testing"

	"fspda/train/setting"
)

// withKeys registers keys for the time of a test.
func withKeys(t *testing.T, more ...setting.Key) {
	t.Helper()
	before := slices.Clone(registeredKeys)
	t.Cleanup(func() { registeredKeys = before })
	for _, k := range more {
		RegisterKey(k)
	}
}

// Each key of this package has a field, of its type, and each field a key.
func TestKeysAndFields(t *testing.T) {
	if err := setting.Fault(own); err != nil {
		t.Error(err)
	}
	if len(own) != len(fields) {
		t.Errorf("%d keys and %d fields", len(own), len(fields))
	}
	for _, f := range new(Config).Fields() {
		if f.Help == "" || !slices.Contains(Groups(), f.Topic) {
			t.Errorf("key %s: help %q, topic %q", f.Name, f.Help, f.Topic)
		}
		if _, whole := f.Value.(*int); whole != f.Whole {
			t.Errorf("key %s: a field of type %T and Whole %v", f.Name, f.Value, f.Whole)
		}
	}
}

// A registered key cannot take a name, have a bad default or an unknown topic.
func TestRegisterKeyRefuses(t *testing.T) {
	for _, k := range []setting.Key{{Name: "alpha", Topic: "run"}, {Name: "Patience", Topic: "run"},
		{Name: "patience", Topic: "runs"}, {Name: "patience", Topic: "run", Default: 2, Range: "[0, 1)"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is accepted", k)
				}
			}()
			withKeys(t, k)
		}()
	}
}

// Values of registered keys belong to one configuration, and not to those that it was copied from.
func TestRegisteredValues(t *testing.T) {
	withKeys(t, setting.Key{Name: "patience", Topic: "run", Default: 3, Whole: true, Since: "0.3.0"},
		setting.Key{Name: "early_stop", Topic: "run", Default: setting.AutoFloat{Auto: true}})
	a := Default()
	if err := a.Parse("run.yaml", []byte("{patience: 5, early_stop: 0.25}")); err != nil {
		t.Fatal(err)
	}
	b := a
	if err := b.Parse("run.yaml", []byte("patience: 7")); err != nil {
		t.Fatal(err)
	}
	if a.Value("patience") != 5 || b.Value("patience") != 7 || Default().Value("patience") != 3 ||
		b.Value("early_stop") != (AutoFloat{V: 0.25}) || b.Value("alpha") != 0.3 {
		t.Error(a.Value("patience"), b.Value("patience"), b.Value("early_stop"))
	}
	if !slices.Equal(b.Explicit(), []string{"patience", "early_stop"}) {
		t.Errorf("%q", b.Explicit())
	}
	var back Config
	if err := back.Parse("config.yaml", b.YAML()); err != nil || back.Fingerprint() != b.Fingerprint() {
		t.Errorf("%v\n%s", err, b.YAML())
	}
}
