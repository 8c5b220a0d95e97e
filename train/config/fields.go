package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"fspda/train/algo"
)

// Groups lists the topics of keys.
func Groups() []string { return []string{"data", "network", "method", "exchange", "run", "output"} }

// Field is one key of a Config, from which flags and documentation are made.
type Field struct {
	Key, Help string
	Group     string // its topic, one of Groups
	Harmless  bool   // never changes a trajectory, or Moves is set
	Moves     bool   // a resumed run may have another value, and then differs by rounding of float32 only
	Value     any    // pointer into the Config
}

// keyTags is what the tags say of the keys, in order, without values. Reading tags takes long.
var keyTags = sync.OnceValue(func() (fs []Field) {
	sections := reflect.TypeFor[Config]()
	for k := range sections.NumField() {
		section := sections.Field(k)
		if section.Type.Kind() != reflect.Struct { // explicit
			continue
		}
		for i := range section.Type.NumField() {
			tag := section.Type.Field(i).Tag
			fs = append(fs, Field{Key: tag.Get("yaml"), Help: tag.Get("help"),
				Group:    cmp.Or(tag.Get("group"), section.Tag.Get("group")),
				Harmless: tag.Get("same") != "", Moves: tag.Get("same") == "move"})
		}
	}
	return fs
})

// Fields lists the keys of c in order, with pointers to their values.
func (c *Config) Fields() []Field {
	fs, words, at := slices.Clone(keyTags()), helpWords(), 0
	sections := reflect.ValueOf(c).Elem()
	for k := range sections.NumField() {
		v := sections.Field(k)
		if v.Kind() != reflect.Struct { // explicit
			continue
		}
		for i := range v.NumField() {
			fs[at].Help = words(fs[at].Key, fs[at].Help)
			fs[at].Value = v.Field(i).Addr().Interface()
			at++
		}
	}
	return fs
}

// Keys lists the keys of a configuration file.
func Keys() []string {
	keys := make([]string, len(keyTags()))
	for i, f := range keyTags() {
		keys[i] = f.Key
	}
	return keys
}

// laterKeys have no effect at their defaults, so that configurations written before these keys
// existed keep their fingerprint.
var laterKeys = []string{"init_head", "image_column", "label_column", "beta1", "beta2", "eps", "params", "tokenizer",
	"block", "layers", "heads", "width", "gelu", "bias", "warmup_iterations", "decay_iterations", "min_alpha", "early",
	"freeze", "layer_lr", "dropout"}

// defaults are the values of Default as text, by key.
var defaults = sync.OnceValue(func() map[string]string {
	values, c := map[string]string{}, Default()
	for _, f := range c.Fields() {
		values[f.Key] = f.text()
	}
	return values
})

// text returns the field's value as text.
func (f Field) text() string { return fmt.Sprint(reflect.ValueOf(f.Value).Elem()) }

// isDefault reports whether the field has the value of Default.
func (f Field) isDefault() bool { return f.text() == defaults()[f.Key] }

// harmless reports whether a key never changes the trajectory of c. The key links changes that of
// an asynchronous run, in which times decide which agents meet.
func (c Config) harmless(f Field) bool {
	if slices.Contains(laterKeys, f.Key) {
		return f.isDefault()
	}
	switch f.Key {
	case "clock":
		return c.Clock == ClockVirtual
	case "deterministic":
		return !c.Deterministic
	case "optimizer": // momentum tells apart the two that auto stands for
		general := method{traits: algo.Traits{Updates: algo.Updates{Optimizers: algo.AnyOptimizer}}}
		return c.Optimizer == auto || c.Optimizer == general.autoOptimizer(0).Name ||
			c.Optimizer == general.autoOptimizer(1).Name
	case "placement":
		m, ok := c.findMethod()
		return c.Placement == "auto" || ok && c.Placement == cmp.Or(c.usualPlacement(m, c.optimizerOf(m)), auto)
	case "decay_form":
		return c.DecayForm == "auto" || c.DecayForm == decayCoupled
	}
	return f.Harmless && (f.Key != "links" || !c.clocked())
}

// Fingerprint identifies the trajectory: it is equal for two configurations that compute the same
// bits on the same device. It covers all keys but the harmless ones.
func (c Config) Fingerprint() string { return c.fingerprint(false) }

// FingerprintWithDevice is the fingerprint of early versions, which covered the device.
func (c Config) FingerprintWithDevice() string { return c.fingerprint(true) }

func (c Config) fingerprint(device bool) string {
	h := sha256.New()
	c.Params = c.settleParams()
	for _, f := range c.Fields() {
		if !c.harmless(f) || device && f.Moves {
			fmt.Fprintf(h, "%s=%s\n", f.Key, f.text())
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Differences lists the keys that would change the trajectory and differ, with both values.
func (c Config) Differences(other Config) []string {
	var diff []string
	c.Params, other.Params = c.settleParams(), other.settleParams()
	a, b := c.Fields(), other.Fields()
	for i := range a {
		if va, vb := a[i].text(), b[i].text(); va != vb && !(c.harmless(a[i]) && other.harmless(b[i])) {
			diff = append(diff, fmt.Sprintf("%s (%s there, %s here)", a[i].Key, vb, va))
		}
	}
	return diff
}
