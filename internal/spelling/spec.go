package spelling

import (
	"fmt"
	"slices"
	"strings"
)

// Split splits "name" or "name(argument)". Spaces around either are dropped.
func Split(spec string) (name, arg string, hasArg bool, err error) {
	name, rest, hasArg := strings.Cut(strings.TrimSpace(spec), "(")
	arg, closed := strings.CutSuffix(rest, ")")
	if hasArg != closed {
		return "", "", false, fmt.Errorf("the bracket that opens in %q does not close at the end", spec)
	}
	return strings.TrimSpace(name), strings.TrimSpace(arg), hasArg, nil
}

// Name returns the name of a spec or form, whatever follows it.
func Name(spec string) string {
	name, _, _ := strings.Cut(spec, "(")
	return strings.TrimSpace(name)
}

// NearestForm returns the form whose name is most similar to the name in a misspelled spec. It
// returns "" if none is similar, or if the spec has the name of a form.
func NearestForm(spec string, forms []string) string {
	var names []string
	for _, f := range forms {
		names = append(names, Name(f))
	}
	at := slices.Index(names, Nearest(Name(spec), names))
	if at < 0 || names[at] == Name(spec) {
		return ""
	}
	return forms[at]
}
