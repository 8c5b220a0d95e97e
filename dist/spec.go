package dist

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	spell "fspda/internal/spelling"
)

// spelling is one row of a table of specs: its form and its meaning.
type spelling struct {
	form, meaning string
}

// Forms lists the spellings of a key of the configuration: graph, edges, mask, mixing or compress.
// An argument stands in brackets: "er(p)".
func Forms(key string) []string {
	return formsOf(map[string][]spelling{"graph": graphSpellings, "edges": processSpellings, "mask": maskSpellings,
		"mixing": mixingSpellings,
		"compress": append(compressorSpellings[:len(compressorSpellings):len(compressorSpellings)],
			latticeSpellings[:2]...)}[key])
}

func formsOf(table []spelling) (forms []string) {
	for _, s := range table {
		forms = append(forms, s.form)
	}
	return forms
}

// FilePath returns the path of the file from which a graph or an edge process is read, or "".
func FilePath(spec string) string {
	name, path, _, err := spell.Split(spec)
	if err != nil || !slices.Contains([]string{"file", "arcs", "trace"}, name) {
		return ""
	}
	return path
}

// unknownSpec returns the error for a spec that is not in the table. It shows the whole table, and
// suggests the row whose spelling is most similar.
func unknownSpec(kind, spec string, table []spelling) error {
	var rows strings.Builder
	for _, s := range table {
		fmt.Fprintf(&rows, "\n  %-22s %s", s.form, s.meaning)
	}
	suggestion := ""
	if near := spell.NearestForm(spec, formsOf(table)); near != "" {
		suggestion = fmt.Sprintf("did you mean %s? ", near)
	}
	return fmt.Errorf("dist: no %s is spelled %q; %swrite one of:%s", kind, spec, suggestion, &rows)
}

// specError returns the error for a spec with a known name and an invalid argument.
func specError(kind, spec, format string, args ...any) error {
	return fmt.Errorf("dist: %s %q: %s", kind, spec, fmt.Sprintf(format, args...))
}

// formOf returns the form of a name: "er(p)" for er.
func formOf(table []spelling, name string) (form string, takesArg, ok bool) {
	for _, s := range table {
		if spell.Name(s.form) == name {
			return s.form, s.form != name, true
		}
	}
	return "", false, false
}

// parsedSpec is a spec whose name is in the table, with an argument exactly if the table has one.
type parsedSpec struct {
	kind, spec string // for errors
	name, arg  string
}

func readSpec(kind, spec string, table []spelling) (parsedSpec, error) {
	name, arg, hasArg, err := spell.Split(spec)
	if err != nil {
		return parsedSpec{}, specError(kind, spec, "%v", err)
	}
	form, takesArg, ok := formOf(table, name)
	switch {
	case !ok:
		return parsedSpec{}, unknownSpec(kind, spec, table)
	case takesArg && (!hasArg || arg == ""):
		return parsedSpec{}, specError(kind, spec, "the argument is missing; write %s", form)
	case hasArg && !takesArg:
		return parsedSpec{}, specError(kind, spec, "it takes no argument; write %s", form)
	}
	return parsedSpec{kind: kind, spec: spec, name: name, arg: arg}, nil
}

func (p parsedSpec) bad(format string, args ...any) error {
	return specError(p.kind, p.spec, format, args...)
}

// float parses the argument as a finite number.
func (p parsedSpec) float() (float64, error) {
	v, err := strconv.ParseFloat(p.arg, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, p.bad("%q is not a finite number", p.arg)
	}
	return v, nil
}

// probability parses the argument as a number in (0,1].
func (p parsedSpec) probability() (float64, error) {
	v, err := p.float()
	if err == nil && !(v > 0 && v <= 1) {
		err = p.bad("the probability is %v; it must be above 0 and at most 1", v)
	}
	return v, err
}

// count parses the argument as an integer of at least 1.
func (p parsedSpec) count() (int, error) {
	v, err := strconv.Atoi(p.arg)
	if err != nil || v < 1 {
		return 0, p.bad("%q is not a whole number of at least 1", p.arg)
	}
	return v, nil
}

// withFloat returns the canonical spec of a name and a number. Parsing it gives the same number.
func withFloat(name string, v float64) string {
	return name + "(" + strconv.FormatFloat(v, 'g', -1, 64) + ")"
}

func withInt(name string, v int) string { return name + "(" + strconv.Itoa(v) + ")" }
