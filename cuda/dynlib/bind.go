package dynlib

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"
)

// Bind sets every function variable of the struct that table points to, whose tag `sym:"name"`
// names a function of h. Fields that hold a uintptr get the address alone, for [Call]. A tag that
// ends in ",optional" leaves the field zero where the library has no such function. The error names
// all that is missing, and the table is not to be used then.
func Bind(table any, h *Handle) error {
	v := reflect.ValueOf(table).Elem()
	var missing []string
	for i := range v.NumField() {
		name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("sym"), ",")
		if name == "" {
			continue
		}
		at, err := h.Symbol(name)
		switch {
		case err != nil && option == "optional":
		case err != nil:
			missing = append(missing, name)
		case v.Field(i).Kind() == reflect.Uintptr:
			v.Field(i).SetUint(uint64(at))
		default:
			register(v.Field(i).Addr().Interface(), at)
		}
	}
	if missing != nil {
		return fmt.Errorf("%s (%s) lacks %s: want a newer one", h.Library.Name, h.Path, strings.Join(missing, ", "))
	}
	return nil
}

// hold does nothing, but the compiler does not know: what it is given lies in the heap, which does
// not move, and not on a stack.
var hold = func(any) {}

// At is the address of something, for [Call]. It stays where it is as long as the caller keeps it
// alive.
func At[T any](p *T) uintptr {
	hold(p)
	return uintptr(unsafe.Pointer(p))
}
