package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
	"fspda/internal/spelling"
	"fspda/train/setting"
)

// Nearest returns the name most similar to the wrong one, or "" if none is similar.
func Nearest(wrong string, names []string) string { return spelling.Nearest(wrong, names) }

// Parse reads YAML into c. Keys that the text does not contain keep their values, and those that it
// contains are marked by [Config.SetExplicit], unless it has more than half of all keys: nobody
// writes so many, so it is a resolved configuration, of this version or an older one. The error for
// an unknown key names the most similar key. Error messages begin with the name, of the file.
func (c *Config) Parse(name string, text []byte) error {
	text = bounded.Unmarked(text)
	if err := bounded.YAML(text); err != nil {
		return &Error{Key: name, Err: err}
	}
	var m yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(text, &m, yaml.UseOrderedMap()); err != nil {
		return &Error{Key: name, Err: err, Want: "expected YAML of the form 'key: value'"}
	}
	m, params, err := takeParams(m)
	if err != nil {
		return err
	}
	named := map[string]any{} // pointers into c
	recipe := slices.Contains(c.explicit, "recipe")
	keys, fields := Keys(), c.fields()
	var given []string
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		at := slices.Index(keys, key)
		if at < 0 {
			e := &UnknownKeyError{Name: key, Err: Error{Key: fmt.Sprintf("%s: key %q", name, key),
				Got: "does not exist", Want: "the keys are " + strings.Join(keys, ", ")}}
			if alias := Alias(key); alias != "" {
				e.Err.Want = fmt.Sprintf("it is called %q here", alias)
			} else if near := Nearest(key, keys); near != "" {
				e.Err.Want = fmt.Sprintf("did you mean %q?", near)
			}
			return e
		}
		if err := checkKind(key, fields[at].Value, item.Value); err != nil {
			return inFile(name, err)
		}
		given, named[key] = append(given, key), fields[at].Value
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		given = append(given, paramKey(name))
	}
	if 2*len(given) <= len(keys) {
		c.SetExplicit(given...)
	}
	for _, item := range m {
		if err := read(named[fmt.Sprint(item.Key)], item.Value); err != nil {
			if _, ok := errors.AsType[*Error](err); !ok {
				err = &Error{Key: fmt.Sprint(item.Key), Err: err}
			}
			return inFile(name, err)
		}
	}
	c.Params = c.Params.with(params)
	c.FoldNames()
	if recipe { // set elsewhere, which counts
		return nil
	}
	return c.UseRecipe()
}

// UnknownKeyError reports a key of a file that does not exist.
type UnknownKeyError struct {
	Name string
	Err  Error
}

func (e *UnknownKeyError) Error() string { return e.Err.Error() }

func (e *UnknownKeyError) Unwrap() error { return &e.Err }

// read reads a value of a file into a field.
func read(field, value any) error {
	if r, ok := field.(*Registered); ok {
		return r.Set(setting.Text(value))
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	return yaml.UnmarshalWithOptions(text, field, yaml.Strict())
}

// inFile puts the name of the file before the key in an error.
func inFile(name string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && name != "" {
		e.Key = name + ": " + e.Key
	}
	return err
}

// takeParams returns the values of the keys params and params.NAME of a file, and the rest of the
// file.
func takeParams(m yaml.MapSlice) (rest yaml.MapSlice, params Params, err error) {
	params = Params{}
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		name, point := strings.CutPrefix(key, paramKey(""))
		inner, isMap := item.Value.(yaml.MapSlice)
		switch {
		case point:
			params[name] = item.Value
		case key == "params" && (isMap || item.Value == nil):
			for _, p := range inner {
				params[fmt.Sprint(p.Key)] = p.Value
			}
		case key == "params":
			return nil, nil, Invalid(key, item.Value, "expected the names and values of the algorithm's own "+
				"settings, as in {beta: 0.9}")
		default:
			rest = append(rest, item)
		}
	}
	return rest, params, nil
}

// checkKind refuses a value that is of another kind than its field, and a fraction for an integer
// key, which YAML would truncate.
func checkKind(key string, field, value any) error {
	want, ok := "", true
	switch field.(type) {
	case *int:
		want = "a whole number"
		switch v := value.(type) {
		case int, int64:
		case uint64:
			ok = v <= math.MaxInt
		default:
			ok = false
		}
	case *uint64:
		want = "a whole number of at least 0"
		switch value.(type) {
		case uint64:
		default:
			ok = false
		}
	case *float64:
		want = "a number"
		switch v := value.(type) {
		case int, int64, uint64, float64:
		case string: // The decoder reads 5e-05 as a text.
			_, err := strconv.ParseFloat(v, 64)
			ok = err == nil
		default:
			ok = false
		}
	case *bool:
		want = "true or false"
		_, ok = value.(bool)
	case *string:
		want = "a name or a text"
		switch value.(type) {
		case yaml.MapSlice, []any:
			ok = false
		}
	}
	if !ok {
		return Invalid(key, valueText(value), "expected %s", want)
	}
	return nil
}

// valueText writes a value of a file on one line.
func valueText(value any) string {
	text, err := yaml.MarshalWithOptions(value, yaml.Flow(true))
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSpace(string(text))
}

// YAML writes c in the form that Parse reads.
func (c Config) YAML() []byte {
	var m yaml.MapSlice
	for _, f := range c.fields() {
		m = append(m, yaml.MapItem{Key: f.Name, Value: f.get()})
	}
	text, err := yaml.Marshal(m)
	if err != nil {
		panic("config: a Config that YAML cannot hold: " + err.Error()) // plain fields: cannot happen
	}
	return text
}
