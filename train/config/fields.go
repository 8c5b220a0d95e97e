package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"

	"fspda/train/setting"
)

// Groups lists the topics of keys.
func Groups() []string { return []string{"data", "network", "method", "exchange", "run", "output"} }

// Field is one key of a Config, from which flags and documentation are made.
type Field struct {
	setting.Key
	Value any // Value points into the Config, or is a [*Registered].
}

// Fields lists the keys of c in order, with pointers to their values.
func (c *Config) Fields() []Field {
	all, words := c.fields(), helpWords()
	for i, f := range all {
		all[i].Help = words(f.Name, f.Help)
		if r, ok := f.Value.(*Registered); ok {
			r.key.Help = all[i].Help
		}
	}
	return all
}

// fields is Fields without the lists of names in the help texts, which take longest.
func (c *Config) fields() []Field {
	all, v := declared(), reflect.ValueOf(c).Elem()
	fs := make([]Field, len(all))
	for i, k := range all {
		fs[i].Key = k
		if at := fields[k.Name]; at != nil {
			fs[i].Value = v.FieldByIndex(at).Addr().Interface()
		} else {
			fs[i].Value = &Registered{c, k}
		}
	}
	return fs
}

// Registered is the value of a key that another package declares, for flags.
type Registered struct {
	config *Config
	key    setting.Key
}

func (r *Registered) Get() any { return r.config.Value(r.key.Name) }

func (r *Registered) String() string {
	if r.config == nil { // flags make such a value to know the zero value
		return ""
	}
	return setting.Text(r.Get())
}

// Set reads a value as flags and files give it. Check refuses those that the key does not admit.
func (r *Registered) Set(text string) error {
	v, err := r.key.Read(r.key.Name, text)
	if err == nil {
		r.config.values = maps.Clone(r.config.values) // other configurations share it
		if r.config.values == nil {
			r.config.values = map[string]any{}
		}
		r.config.values[r.key.Name] = v
	}
	return err
}

// Type is the name of the type in help texts.
func (r *Registered) Type() string {
	if a, ok := r.key.Initial().(setting.AutoFloat); ok {
		return a.Type()
	}
	return fmt.Sprintf("%T", r.key.Initial())
}

// get returns the field's value in the type of the key.
func (f Field) get() any {
	if r, ok := f.Value.(*Registered); ok {
		return r.Get()
	}
	return reflect.ValueOf(f.Value).Elem().Interface()
}

func (f Field) Text() string { return fmt.Sprint(f.get()) }

// setText gives a field of no other package the value of a text that Text returned.
func (f Field) setText(text string) error {
	if s, ok := f.Value.(*string); ok {
		*s = text
		return nil
	}
	return yaml.Unmarshal([]byte(text), f.Value)
}

func (f Field) isDefault() bool { return f.Text() == fmt.Sprint(f.Initial()) }

// inert reports whether a key is left out of the fingerprint of c: the value never changes the
// trajectory, or configurations without the key have the same trajectory.
func (c Config) inert(f Field) bool {
	if f.Inert != nil {
		return f.Inert(question{given: c})
	}
	return f.Free() || f.Since != "" && f.isDefault()
}

// Fingerprint identifies the trajectory: it is equal for two configurations that compute the same
// bits on the same device. It covers all keys but the inert ones.
func (c Config) Fingerprint() string { return c.fingerprint(false) }

// FingerprintWithDevice is the fingerprint of early versions, which covered the device.
func (c Config) FingerprintWithDevice() string { return c.fingerprint(true) }

func (c Config) fingerprint(device bool) string {
	h := sha256.New()
	for _, f := range c.covered(device) {
		fmt.Fprintf(h, "%s=%s\n", f.Name, f.Text())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (c Config) covered(device bool) []Field {
	c.Params = c.coveredParams()
	return slices.DeleteFunc(c.fields(), func(f Field) bool {
		return c.inert(f) && !(device && f.Resume == setting.Moves)
	})
}

// Covered returns the values that the fingerprint covers, by key.
func (c Config) Covered() map[string]string {
	values := map[string]string{}
	for _, f := range c.covered(false) {
		values[f.Name] = f.Text()
	}
	return values
}

// Differences lists the keys that would change the trajectory and differ, with both values.
func (c Config) Differences(other Config) []string {
	var diff []string
	c.Params, other.Params = c.coveredParams(), other.coveredParams()
	a, b := c.fields(), other.fields()
	for i := range a {
		if va, vb := a[i].Text(), b[i].Text(); va != vb && !(c.inert(a[i]) && other.inert(b[i])) {
			diff = append(diff, fmt.Sprintf("%s (%s there, %s here)", a[i].Name, vb, va))
		}
	}
	return diff
}
