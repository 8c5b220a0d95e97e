package simnet

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/spelling"
)

// knownKeys refuses keys that the type has no field for, at any depth.
func knownKeys(where string, v any, t reflect.Type) error {
	switch v := v.(type) {
	case []any:
		if t.Kind() != reflect.Slice || t == reflect.TypeFor[agentList]() {
			return nil // decoding says what it should be
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

// collectKeys visits the keys of a struct, and those of the structs that it holds inline.
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
