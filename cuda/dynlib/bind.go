package dynlib

import (
	"fmt"
	"reflect"
	"strings"
)

// Bind sets every function variable of the struct that table points to, embedded structs included,
// whose tag `sym:"name"` names a function of h. A uintptr field gets the address, for [Call]. If
// the tag ends in ",optional" and the library lacks the function, the field stays zero. The error
// names all missing functions; then the table must not be used.
func Bind(table any, h *Handle) error {
	v := reflect.ValueOf(table).Elem()
	var missing []string
	for _, field := range reflect.VisibleFields(v.Type()) {
		name, option, _ := strings.Cut(field.Tag.Get("sym"), ",")
		if name == "" {
			continue
		}
		f := v.FieldByIndex(field.Index)
		at, err := h.Symbol(name)
		switch {
		case err != nil && option == "optional":
		case err != nil:
			missing = append(missing, name)
		case f.Kind() == reflect.Uintptr:
			f.SetUint(uint64(at))
		default:
			register(f.Addr().Interface(), at)
		}
	}
	if missing != nil {
		return fmt.Errorf("%s (%s) lacks %s: install a newer version", h.Library.Name, h.Path,
			strings.Join(missing, ", "))
	}
	return nil
}
