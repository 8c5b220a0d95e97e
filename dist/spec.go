package dist

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	spell "fspda/internal/spelling"
)

// ArgKind is the kind of an argument of a spec.
type ArgKind int

const (
	NumberArg ArgKind = iota
	WholeArg          // WholeArg is a number without a fraction.
	TextArg           // TextArg is no number, such as the path of a file. Its value is 0.
)

// Arg declares an argument of a spec: its name in the form, and how its text is read.
type Arg struct {
	Name string
	Kind ArgKind
	Read func(text string) (float64, error) // Read returns an error that names the expected values.
}

// canonical returns the text of a value that reads as the same value.
func (a Arg) canonical(text string, v float64) string {
	switch whole, err := strconv.Atoi(text); {
	case a.Kind == NumberArg:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case a.Kind == WholeArg && err == nil:
		return strconv.Itoa(whole)
	}
	return text
}

// Form is the part that all tables of specs have in common: a name, the arguments in brackets
// behind it, and one line of meaning. Several rows may have one name and different numbers of
// arguments.
type Form struct {
	Name    string
	Args    []Arg
	Meaning string
}

// String shows the name with its arguments: "er(p)".
func (f Form) String() string {
	if len(f.Args) == 0 {
		return f.Name
	}
	var names []string
	for _, a := range f.Args {
		names = append(names, a.Name)
	}
	return f.Name + "(" + strings.Join(names, ",") + ")"
}

func (f Form) form() Form { return f }

// formed is a row of a table of specs.
type formed interface{ form() Form }

// Number is an argument that is a finite number.
func Number(name string) Arg { return Arg{name, NumberArg, readNumber} }

func readNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a finite number", text)
	}
	return v, nil
}

// Probability is an argument in (0,1].
func Probability(name string) Arg {
	return Arg{name, NumberArg, func(text string) (float64, error) {
		v, err := readNumber(text)
		if err == nil && !(v > 0 && v <= 1) {
			err = fmt.Errorf("the probability is %v; it must be above 0 and at most 1", v)
		}
		return v, err
	}}
}

// Count is an argument that is a whole number of at least 1.
func Count(name string) Arg {
	return Whole(name, 1, math.MaxInt, "%q is not a whole number of at least 1")
}

// Whole is an argument that is a whole number from low to high. The refusal has the text in it.
func Whole(name string, low, high int, refusal string) Arg {
	return Arg{name, WholeArg, func(text string) (float64, error) {
		v, err := strconv.Atoi(text)
		if err != nil || v < low || v > high {
			return 0, fmt.Errorf(refusal, text)
		}
		return float64(v), nil
	}}
}

// textArg is an argument that is no number.
func textArg(name string) Arg {
	return Arg{name, TextArg, func(string) (float64, error) { return 0, nil }}
}

// pathArg is the argument of specs that read a file.
const pathArg = "path"

// Spec is a spec whose name is in a table, with the values of its arguments in the order of the
// row.
type Spec struct {
	Name    string
	Numbers []float64
	Texts   []string // Texts are the arguments as they are written canonically.

	kind, spec string // They are for errors.
}

func (p Spec) Errorf(format string, args ...any) error {
	return fmt.Errorf("dist: %s %q: %s", p.kind, p.spec, fmt.Sprintf(format, args...))
}

// Whole returns the value of an argument that is a whole number.
func (p Spec) Whole(arg int) int {
	v, err := strconv.Atoi(p.Texts[arg])
	if err != nil {
		panic("dist: " + p.Texts[arg] + " was read as a whole number") // cannot happen
	}
	return v
}

// String is the canonical spec. Parsing it gives the same numbers.
func (p Spec) String() string {
	if len(p.Texts) == 0 {
		return p.Name
	}
	return p.Name + "(" + strings.Join(p.Texts, ",") + ")"
}

// Forms lists the forms of a key of the configuration: graph, edges, mask, mixing or compress.
func Forms(key string) []string {
	switch key {
	case "graph":
		return FormsOf(graphKinds)
	case "edges":
		return FormsOf(processKinds)
	case "mask":
		return FormsOf(maskForms)
	case "mixing":
		return FormsOf(mixingKinds)
	case "compress":
		return FormsOf(Compressors())
	}
	return nil
}

// FormsOf lists the forms of the rows of a table.
func FormsOf[T formed](table []T) (forms []string) {
	for _, row := range table {
		forms = append(forms, row.form().String())
	}
	return forms
}

// FilePath returns the path of the file from which a graph or an edge process is read, or "".
func FilePath(spec string) string {
	name, path, _, err := spell.Split(spec)
	isPath := func(f Form, found bool) bool { return found && len(f.Args) == 1 && f.Args[0].Name == pathArg }
	graph, ok := rowOf(graphKinds, name)
	process, ok2 := rowOf(processKinds, name)
	if err != nil || !isPath(graph.Form, ok) && !isPath(process.Form, ok2) {
		return ""
	}
	return path
}

// rowOf returns the first row of a name.
func rowOf[T formed](table []T, name string) (row T, ok bool) {
	at := slices.IndexFunc(table, func(row T) bool { return row.form().Name == name })
	if at < 0 {
		return row, false
	}
	return table[at], true
}

// unknownSpec returns the error for a spec that is not in the table. It shows the whole table, and
// suggests the row whose spelling is most similar.
func unknownSpec[T formed](kind, spec string, table []T) error {
	var rows strings.Builder
	for _, row := range table {
		fmt.Fprintf(&rows, "\n  %-22s %s", row.form(), row.form().Meaning)
	}
	suggestion := ""
	if near := spell.NearestForm(spec, FormsOf(table)); near != "" {
		suggestion = fmt.Sprintf("did you mean %s? ", near)
	}
	return fmt.Errorf("dist: no %s is spelled %q; %swrite one of:%s", kind, spec, suggestion, &rows)
}

// readSpec returns the row that a spec names, and the values of its arguments. A single argument is
// all the text in the brackets; several are separated by commas.
func readSpec[T formed](kind, spec string, table []T) (p Spec, row T, err error) {
	p = Spec{kind: kind, spec: spec}
	name, arg, hasArg, err := spell.Split(spec)
	if err != nil {
		return p, row, p.Errorf("%v", err)
	}
	row, ok := rowOf(table, name)
	if !ok {
		return p, row, unknownSpec(kind, spec, table)
	}
	switch takes := len(row.form().Args) > 0; {
	case takes && (!hasArg || arg == ""):
		return p, row, p.Errorf("the argument is missing; write %s", row.form())
	case hasArg && !takes:
		return p, row, p.Errorf("it takes no argument; write %s", row.form())
	case hasArg:
		row, p.Texts = splitArgs(table, name, arg)
	}
	args := row.form().Args
	if len(p.Texts) != len(args) {
		return p, row, p.Errorf("it takes %d arguments; write %s", len(args), row.form())
	}
	p.Name = name
	for k, a := range args {
		v, err := a.Read(p.Texts[k])
		if err != nil {
			return p, row, p.Errorf("%v", err)
		}
		p.Numbers, p.Texts[k] = append(p.Numbers, v), a.canonical(p.Texts[k], v)
	}
	return p, row, nil
}

// splitArgs splits the text in brackets into the arguments of the row of this name that takes as
// many, or else of the first row of this name.
func splitArgs[T formed](table []T, name, arg string) (T, []string) {
	parts := strings.Split(arg, ",")
	for k := range parts {
		parts[k] = strings.TrimSpace(parts[k])
	}
	first, _ := rowOf(table, name)
	if len(first.form().Args) == 1 {
		return first, []string{arg}
	}
	at := slices.IndexFunc(table, func(row T) bool {
		return row.form().Name == name && len(row.form().Args) == len(parts)
	})
	if at < 0 {
		return first, parts
	}
	return table[at], parts
}
