package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
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
	m, text, params, err := takeParams(m, text)
	if err != nil {
		return err
	}
	keys, fields := Keys(), c.Fields()
	var given []string
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		at := slices.Index(keys, key)
		if at < 0 {
			e := &Error{Key: fmt.Sprintf("%s: key %q", name, key), Got: "does not exist",
				Want: "the keys are " + strings.Join(keys, ", ")}
			if alias := Alias(key); alias != "" {
				e.Want = fmt.Sprintf("it is called %q here", alias)
			} else if near := Nearest(key, keys); near != "" {
				e.Want = fmt.Sprintf("did you mean %q?", near)
			}
			return e
		}
		if err := checkKind(key, fields[at].Value, item.Value); err != nil {
			return inFile(name, err)
		}
		given = append(given, key)
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		given = append(given, paramKey(name))
	}
	if 2*len(given) <= len(keys) {
		c.SetExplicit(given...)
	}
	if len(m) == 0 && len(params) == 0 {
		return nil
	}
	old := c.Params
	c.Params = nil // the decoder must not write to a map that other configurations share
	named := slices.DeleteFunc(fields, func(f Field) bool {
		return f.Key != "params" && !slices.Contains(given, f.Key)
	})
	if err := decode(text, named); err != nil && !errors.Is(err, io.EOF) {
		return &Error{Key: strings.TrimPrefix(name+": "+c.undecodable(m), ": "), Err: err}
	}
	c.Params = old.with(params)
	c.FoldNames()
	return nil
}

// decode reads the values of all keys that the text may have. Before it decodes a struct, the decoder
// looks at each of its fields, so that one of these keys alone takes a small part of the time of a
// Config.
func decode(text []byte, named []Field) error {
	parts := make([]reflect.StructField, len(named))
	for i, f := range named {
		parts[i] = reflect.StructField{Name: fmt.Sprint("Key", i), Type: reflect.TypeOf(f.Value).Elem(),
			Tag: reflect.StructTag(fmt.Sprintf("yaml:%q", f.Key))}
	}
	some := reflect.New(reflect.StructOf(parts))
	for i, f := range named {
		some.Elem().Field(i).Set(reflect.ValueOf(f.Value).Elem())
	}
	err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(some.Interface())
	for i, f := range named {
		reflect.ValueOf(f.Value).Elem().Set(some.Elem().Field(i))
	}
	return err
}

// inFile puts the name of the file before that of the key in an error.
func inFile(name string, err error) error {
	var e *Error
	if errors.As(err, &e) && name != "" {
		e.Key = name + ": " + e.Key
	}
	return err
}

// undecodable returns the first of the keys that cannot be decoded; empty if each can by itself.
func (c *Config) undecodable(m yaml.MapSlice) string {
	for _, item := range m {
		text, err := yaml.Marshal(yaml.MapSlice{item})
		probe := *c
		if err == nil && yaml.Unmarshal(text, &probe) != nil {
			return fmt.Sprint(item.Key)
		}
	}
	return ""
}

// takeParams returns the values of the keys params and params.NAME of a file, and the rest of the
// file. A text that has keys with a point is written anew without them.
func takeParams(m yaml.MapSlice, text []byte) (rest yaml.MapSlice, _ []byte, params Params, err error) {
	params = Params{}
	dotted := false
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		name, point := strings.CutPrefix(key, paramKey(""))
		inner, isMap := item.Value.(yaml.MapSlice)
		switch {
		case point:
			dotted, params[name] = true, item.Value
		case key == "params" && (isMap || item.Value == nil):
			for _, p := range inner {
				params[fmt.Sprint(p.Key)] = p.Value
			}
		case key == "params":
			return nil, nil, nil, Invalid(key, item.Value, "expected the names and values of the algorithm's own "+
				"settings, as in {beta: 0.9}")
		default:
			rest = append(rest, item)
		}
	}
	if dotted {
		text, err = yaml.Marshal(rest)
	}
	return rest, text, params, err
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
		case string: // the decoder reads 5e-05 as a text
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
	text, err := yaml.Marshal(c)
	if err != nil {
		panic("train: a Config that YAML cannot hold: " + err.Error()) // plain fields: cannot happen
	}
	return text
}
