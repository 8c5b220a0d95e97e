package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
)

// Field is one key of a Config, from which flags and documentation are made.
type Field struct {
	Key, Help string
	Harmless  bool // never changes a trajectory, or Moves is set
	Moves     bool // a resumed run may have another value, and then differs by rounding of float32 only
	Value     any  // pointer into the Config
}

// Fields lists the keys of c in order, with pointers to their values.
func (c *Config) Fields() []Field {
	var fs []Field
	sections := reflect.ValueOf(c).Elem()
	for k := range sections.NumField() {
		v := sections.Field(k)
		if v.Kind() != reflect.Struct { // explicit
			continue
		}
		for i := range v.NumField() {
			tag := v.Type().Field(i).Tag
			fs = append(fs, Field{Key: tag.Get("yaml"), Help: tag.Get("help"), Harmless: tag.Get("same") != "",
				Moves: tag.Get("same") == "move", Value: v.Field(i).Addr().Interface()})
		}
	}
	return fs
}

// Keys lists the keys of a configuration file.
func Keys() []string {
	var keys []string
	for _, f := range new(Config).Fields() {
		keys = append(keys, f.Key)
	}
	return keys
}

// harmless reports whether a key never changes the trajectory of c. The key links changes that of
// an asynchronous run, in which times decide which agents meet.
func (c Config) harmless(f Field) bool {
	switch f.Key { // configurations written before these keys existed keep their fingerprint
	case "clock":
		return c.Clock == ClockVirtual
	case "deterministic":
		return !c.Repeats
	case "init_head":
		return c.Head == HeadFile
	case "image_column":
		return c.ImageColumn == ""
	case "label_column":
		return c.LabelColumn == ""
	case "optimizer": // momentum tells sgd from heavy-ball
		return c.Optimizer == "auto" || c.Optimizer == optimizerSGD || c.Optimizer == optimizerHeavyBall
	case "beta1":
		return c.Beta1 == Default().Beta1
	case "beta2":
		return c.Beta2 == Default().Beta2
	case "eps":
		return c.Eps == Default().Eps
	case "placement":
		m, ok := c.findMethod()
		return c.Placement == "auto" || ok && c.Placement == c.usualPlacement(m)
	case "decay_form":
		return c.DecayForm == "auto" || c.DecayForm == decayCoupled
	case "params":
		return len(c.Params) == 0
	case "tokenizer":
		return c.Tokenizer == "auto"
	case "block":
		return c.Block == 0
	case "layers":
		return c.Layers == 0
	case "heads":
		return c.Heads == 0
	case "width":
		return c.Width == 0
	case "gelu":
		return c.GELU == Default().GELU
	case "bias":
		return c.Bias
	case "warmup_iterations":
		return c.WarmupT == 0
	case "decay_iterations":
		return c.DecayT == 0
	case "min_alpha":
		return c.MinAlpha == 0
	case "early":
		return !c.Early
	case "freeze":
		return c.Freeze == ""
	case "layer_lr":
		return c.LayerLR == ""
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
			fmt.Fprintf(h, "%s=%v\n", f.Key, reflect.ValueOf(f.Value).Elem().Interface())
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
		va, vb := fmt.Sprint(reflect.ValueOf(a[i].Value).Elem()), fmt.Sprint(reflect.ValueOf(b[i].Value).Elem())
		if va != vb && !(c.harmless(a[i]) && other.harmless(b[i])) {
			diff = append(diff, fmt.Sprintf("%s (%s there, %s here)", a[i].Key, vb, va))
		}
	}
	return diff
}
