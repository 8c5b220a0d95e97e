package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
	"fspda/internal/spelling"
)

// Nearest returns the name most similar to the wrong one, or "" if none is similar.
func Nearest(wrong string, names []string) string { return spelling.Nearest(wrong, names) }

// Parse reads YAML into c. Keys that the text does not contain keep their values, and those that it
// contains are marked by [Config.SetExplicit], unless it has more than half of all keys: nobody
// writes so many, so it is a resolved configuration, of this version or an older one. The error for
// an unknown key names the most similar key. The name is that of the file, for error messages.
func (c *Config) Parse(name string, text []byte) error {
	if err := bounded.YAML(text); err != nil {
		return &Error{Key: name, Err: err}
	}
	var m yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &m, yaml.UseOrderedMap()); err != nil {
		return &Error{Key: name, Err: err, Want: "expected YAML of the form 'key: value'"}
	}
	keys, fields := Keys(), c.Fields()
	var given []string
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		at := slices.Index(keys, key)
		if at < 0 {
			e := &Error{Key: fmt.Sprintf("%s: key %q", name, key), Got: "does not exist",
				Want: "the keys are " + strings.Join(keys, ", ")}
			if near := Nearest(key, keys); near != "" {
				e.Want = fmt.Sprintf("did you mean %q?", near)
			}
			return e
		}
		if err := checkInteger(key, fields[at].Value, item.Value); err != nil {
			return err
		}
		given = append(given, key)
	}
	if 2*len(given) <= len(keys) {
		c.SetExplicit(given...)
	}
	if len(m) == 0 {
		return nil
	}
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(c); err != nil {
		return &Error{Key: name, Err: err}
	}
	return nil
}

// checkInteger refuses a fraction for an integer key, which YAML would truncate.
func checkInteger(key string, field, value any) error {
	switch field.(type) {
	case *int, *uint64:
		switch value.(type) {
		case int, int64, uint64:
		default:
			return Invalid(key, value, "expected a whole number")
		}
	}
	return nil
}

// YAML writes c in the form that Parse reads.
func (c Config) YAML() []byte {
	text, err := yaml.Marshal(c)
	if err != nil {
		panic("train: a Config that YAML cannot hold: " + err.Error()) // plain fields: cannot happen
	}
	return text
}
