package setting

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"fspda/internal/spelling"
)

// Key declares one setting. Only Name and Help are necessary: a key without more is a number.
type Key struct {
	// Name is the key in files: lower-case letters, digits and underscores. The flag has dashes.
	Name string
	// Help is one line for help texts and the reference.
	Help string
	// Topic is the topic of help texts that lists the flag.
	Topic string

	// Default is the value of a setting that is not set, and has the type of the key: a number, a
	// text, a bool, an [AutoFloat] or another type that flags can set. If it is nil, the default is
	// the first of Choices, or the number 0.
	Default any
	// Whole says that a number is a whole one, whose type is int. Other numbers are float64.
	Whole bool
	// Range is the interval of admitted numbers, as in "[0, 1)", "(0, 1]" or "[1, inf)". If it is
	// empty, every finite number is admitted.
	Range string
	// Want says in words which values Range admits, to complete "expected". If it is empty, Range
	// and Help say so.
	Want string
	// Choices are the admitted names of a text.
	Choices []string
	// Names returns the admitted names where they are not known before the program runs.
	Names func() []string
	// Forms says that names may have arguments in brackets, as er(p), so that Check or the reader
	// of the setting decides.
	Forms bool
	// Check refuses values beyond Range and names, with an error that [Invalid] makes.
	Check func(key string, value any) error

	// Needs are the conditions under which the setting has an effect on a run. A setting that is
	// set and has none is refused.
	Needs []Need

	// Since is the version that brought the key, after the first one. Configurations that were
	// stored before do not have it: they keep their fingerprint if the default changes nothing.
	Since string
	// Resume says how a run that is resumed takes another value.
	Resume Resume
	// Inert reports whether the value of a run is left out of its fingerprint, in place of Since
	// and Resume. It serves keys for which several values are left out.
	Inert func(r Run) bool
}

// Resume says how a run that is resumed takes another value of a setting.
type Resume int

const (
	Refused  Resume = iota // The value makes another run: it is part of the fingerprint.
	Recorded               // The run is the same; its records, or the time that it takes, may change.
	Computed               // Nothing but the way in which the run is computed and kept changes.
	Moves                  // The run goes on, and differs by rounding of float32 from then on.
)

// Free reports whether a resumed run may have another value.
func (k Key) Free() bool { return k.Resume != Refused }

// Need is a condition under which a setting has an effect.
type Need struct {
	Words string // The condition in words, to complete "it needs": "schedule cosine".
	// Says returns the words where they are not known before the program runs.
	Says  func() string
	Holds func(r Run) bool
}

// Text is the condition in words.
func (n Need) Text() string {
	if n.Says != nil {
		return n.Says()
	}
	return n.Words
}

// Run answers the questions of conditions about a run.
type Run interface {
	Given(key string) any // Given returns the value that the user gave, or the default.
	Value(key string) any // Value returns the value after defaults of the method and auto are resolved.
}

// Is is the condition that another setting was given as one of some values.
func Is(key string, values ...any) Need {
	var words []string
	for _, v := range values {
		words = append(words, Text(v))
	}
	return Need{Words: key + " " + Either(words),
		Holds: func(r Run) bool { return slices.Contains(values, r.Given(key)) }}
}

// Initial returns the default in the type of the key.
func (k Key) Initial() any {
	switch d := k.Default.(type) {
	case nil:
		if names := k.Admitted(); len(names) > 0 {
			return names[0]
		}
		return k.number(0)
	case int:
		return k.number(float64(d))
	case float64:
		return k.number(d)
	}
	return k.Default
}

func (k Key) number(v float64) any {
	if k.Whole {
		return int(v)
	}
	return v
}

// Admitted lists the admitted names of a text; nil if the key is of another type, or admits any.
func (k Key) Admitted() []string {
	if k.Names != nil {
		return k.Names()
	}
	return k.Choices
}

// Value returns a value of a file, of a flag or of Go in the type of the key, and refuses values
// that the key does not admit. The errors call the key name.
func (k Key) Value(name string, v any) (any, error) {
	typed, err := k.Read(name, v)
	if err == nil {
		err = k.Refuse(name, typed)
	}
	return typed, err
}

// Read is Value without Refuse: it refuses only values of another type.
func (k Key) Read(name string, v any) (any, error) {
	text := Text(v)
	typed, err := k.parse(text)
	if err != nil {
		return nil, k.refusal(name, text)
	}
	return typed, nil
}

func (k Key) parse(text string) (any, error) {
	switch k.Initial().(type) {
	case string:
		return text, nil
	case bool:
		return strconv.ParseBool(text)
	case uint64:
		return strconv.ParseUint(text, 10, 64)
	case AutoFloat:
		var a AutoFloat
		return a, a.Set(text)
	case int:
		f, err := strconv.ParseFloat(text, 64)
		if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, errors.New("no whole number")
		}
		return int(f), err
	case float64:
		return strconv.ParseFloat(text, 64)
	}
	return nil, fmt.Errorf("no text has the type %T", k.Default)
}

// Refuse returns the fault of a value in the type of the key, or nil.
func (k Key) Refuse(name string, value any) error {
	var err error
	switch v := value.(type) {
	case string:
		if names := k.Admitted(); len(names) > 0 && !k.Forms {
			err = OneOf(names...)(name, v)
		}
	case AutoFloat:
		if !v.Auto {
			err = k.refuseNumber(name, v.V, v.V)
		}
	case float64:
		err = k.refuseNumber(name, v, v)
	case int:
		err = k.refuseNumber(name, float64(v), v)
	}
	if err == nil && k.Check != nil {
		err = k.Check(name, value)
	}
	return err
}

// refuseNumber refuses numbers out of range. Where the range excludes 0, as of step sizes, a number
// must neither become 0 nor infinite in single precision, in which networks train.
func (k Key) refuseNumber(name string, v float64, shown any) error {
	low, high, _ := k.interval()
	in := func(v float64) bool { return low.below(v) && high.above(v) }
	if !in(v) {
		return k.refusal(name, shown)
	}
	if single := float64(float32(v)); !k.Whole && !in(0) && (single == 0 || math.IsInf(single, 0)) {
		return Invalid(name, v, "it is %g in single precision, in which networks train: expected %s", single, k.want())
	}
	return nil
}

// refusal is the error of a value that the key does not admit.
func (k Key) refusal(name string, got any) error {
	if k.Want != "" {
		return Invalid(name, got, "expected %s", k.Want)
	}
	return Invalid(name, got, "expected %s: %s", k.want(), k.Help)
}

// want says which values are admitted.
func (k Key) want() string {
	if k.Want != "" {
		return k.Want
	}
	if names := k.Admitted(); len(names) > 0 {
		return Either(names)
	}
	switch k.Initial().(type) {
	case string:
		return "a text"
	case bool:
		return "true or false"
	case uint64:
		return "a whole number of at least 0"
	}
	kind := "a finite number"
	switch {
	case k.Whole:
		kind = "a whole number"
	case k.Range != "":
		kind = "a number"
	}
	if k.Range != "" {
		kind += " in " + k.Range
	}
	if _, auto := k.Default.(AutoFloat); auto {
		kind += ", or auto"
	}
	return kind
}

// String describes the setting for help texts.
func (k Key) String() string {
	return fmt.Sprintf("%s (%s, default %s): %s", k.Name, k.want(), Text(k.Initial()), k.Help)
}

// bound is one end of an interval.
type bound struct {
	at   float64
	open bool
}

func (b bound) below(v float64) bool { return v > b.at || v == b.at && !b.open }
func (b bound) above(v float64) bool { return v < b.at || v == b.at && !b.open }

// interval reads Range. Infinite ends are open.
func (k Key) interval() (low, high bound, err error) {
	low, high = bound{math.Inf(-1), true}, bound{math.Inf(1), true}
	text := strings.ReplaceAll(k.Range, " ", "")
	if text == "" {
		return low, high, nil
	}
	from, to, ok := strings.Cut(strings.Trim(text, "()[]"), ",")
	if !ok || len(text) < 5 || !strings.ContainsAny(text[:1], "([") || !strings.ContainsAny(text[len(text)-1:], ")]") {
		return low, high, fmt.Errorf("range %q is not of the form [0, 1)", k.Range)
	}
	if low.at, err = strconv.ParseFloat(from, 64); err == nil {
		high.at, err = strconv.ParseFloat(to, 64)
	}
	if err != nil || !(low.at < high.at) {
		return low, high, fmt.Errorf("range %q has no two ends in order", k.Range)
	}
	low.open, high.open = text[0] == '(' || math.IsInf(low.at, 0), text[len(text)-1] == ')' || math.IsInf(high.at, 0)
	return low, high, nil
}

var keyName = regexp.MustCompile("^[a-z0-9_]+$")

// Fault returns the error in a list of declarations, or nil.
func Fault(keys []Key) error {
	seen := map[string]bool{}
	for _, k := range keys {
		if !keyName.MatchString(k.Name) {
			return fmt.Errorf("parameter name %q: want lower-case letters, digits and underscores", k.Name)
		}
		if seen[k.Name] {
			return fmt.Errorf("parameter %s occurs twice", k.Name)
		}
		seen[k.Name] = true
		if _, _, err := k.interval(); err != nil {
			return fmt.Errorf("parameter %s: %w", k.Name, err)
		}
		if err := k.Refuse(k.Name, k.Initial()); err != nil {
			return fmt.Errorf("parameter %s: its default is not admitted: %w", k.Name, err)
		}
	}
	return nil
}

// Text formats a value as flags take it.
func Text(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// OneOf returns a check that accepts the given names.
func OneOf(names ...string) func(key string, value any) error {
	return func(key string, value any) error {
		got := value.(string)
		if slices.Contains(names, got) {
			return nil
		}
		return Invalid(key, fmt.Sprintf("%q", got), "%sexpected %s", Suggestion(got, names), strings.Join(names, ", "))
	}
}

// Suggestion asks whether the most similar of names was meant; it is empty if none is similar.
func Suggestion(wrong string, names []string) string {
	if near := spelling.Nearest(wrong, names); near != "" {
		return fmt.Sprintf("did you mean %s? ", near)
	}
	return ""
}

// Either joins names by "or".
func Either(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
