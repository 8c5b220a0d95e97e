package simnet

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"

	"fspda/internal/spelling"
)

// wrongKind is the error of a value that is of another kind than its key, with the line, the key
// and the value in place of an excerpt of the file. Other errors stay as they are.
func wrongKind(err error) error {
	var e *yaml.TypeError
	if !errors.As(err, &e) || e.Token == nil {
		return err
	}
	said := e.Token.Value
	if colon := e.Token.Prev; colon != nil && colon.Prev != nil && colon.Type == token.MappingValueType {
		said = colon.Prev.Value + " " + said
	}
	return fmt.Errorf("line %d: %s: %s", e.Token.Position.Line, said, e.GetMessage())
}

// knownKeys refuses keys that the type has no field for, at any depth.
func knownKeys(where string, v any, t reflect.Type) error {
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice || t == reflect.TypeFor[agentList]() {
			return nil // decoding reports the expected type
		}
		var errs []error
		for k, item := range v {
			errs = append(errs, knownKeys(fmt.Sprintf("%s[%d]", where, k), item, t.Elem()))
		}
		return errors.Join(errs...)
	case yaml.MapSlice:
		if t.Kind() != reflect.Struct {
			return nil
		}
		return knownFields(where, v, t)
	}
	return nil
}

func knownFields(where string, m yaml.MapSlice, t reflect.Type) error {
	fields := map[string]reflect.Type{}
	var names []string
	collectKeys(t, func(name string, field reflect.Type) {
		fields[name] = field
		names = append(names, name)
	})
	var errs []error
	for _, item := range m {
		key := fmt.Sprint(item.Key)
		at := strings.TrimPrefix(where+"."+key, ".")
		if f, ok := fields[key]; ok {
			errs = append(errs, knownKeys(at, item.Value, f))
			continue
		}
		errs = append(errs, fmt.Errorf("key %q does not exist%s", at, didYouMean(key, names, "the keys are")))
	}
	return errors.Join(errs...)
}

// collectKeys visits the keys of a struct, and the keys of the structs that it holds inline.
func collectKeys(t reflect.Type, visit func(name string, field reflect.Type)) {
	for k := range t.NumField() {
		f := t.Field(k)
		if name := f.Tag.Get("yaml"); name == ",inline" {
			collectKeys(f.Type, visit)
		} else {
			visit(name, f.Type)
		}
	}
}

func didYouMean(wrong string, names []string, all string) string {
	if near := spelling.Nearest(wrong, names); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return fmt.Sprintf(": %s %s", all, strings.Join(names, ", "))
}
