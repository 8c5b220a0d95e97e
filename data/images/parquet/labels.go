package parquet

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"fspda/data/images"
)

const (
	maxClasses   = 1 << 20
	maxClassName = 1 << 10 // bytes
)

// label converts the label of a row. ok is false if the row has none.
func (r *rows) label(kind kind, v value) (y int32, ok bool, err error) {
	switch {
	case v.null || kind == integers && v.n == -1:
		return 0, false, nil
	case kind == texts:
		if len(v.b) > maxClassName || !utf8.Valid(v.b) {
			return 0, false, fmt.Errorf("a label of %d bytes, want a name of at most %d", len(v.b), maxClassName)
		}
		y, seen := r.names[string(v.b)]
		if !seen {
			y = int32(len(r.names))
			r.names[string(v.b)] = y
		}
		if y >= maxClasses {
			return 0, false, fmt.Errorf("more than %d different labels", maxClasses)
		}
		return y, true, nil
	case v.n < 0 || v.n >= maxClasses:
		return 0, false, fmt.Errorf("label %d, want 0 to %d, or -1 or null for none", v.n, maxClasses-1)
	}
	return int32(v.n), true, nil
}

// classes returns the names stored in the files, the strings of the labels in training, or the
// numbers up to the largest label.
func classes(path string, lists []*rows) ([]string, error) {
	first := lists[0]
	for _, r := range lists {
		if len(r.at)+r.unlabelled == 0 {
			return nil, &images.FormatError{Path: r.files(), Got: "no row", Want: "at least one picture"}
		}
		if len(r.at) == 0 {
			return nil, &images.FormatError{Path: path, Got: fmt.Sprintf("no row with a label, and %d without",
				r.unlabelled), Want: "at least one picture with its label",
				Hint: "other columns can be named with --image-column and --label-column"}
		}
		if r.kind != first.kind || len(r.classes) > 0 && len(first.classes) > 0 &&
			!slices.EqualFunc(r.classes, first.classes, sameName) {
			return nil, &images.FormatError{Path: path,
				Got: "other class names or labels of another type for testing than for training", Want: "the same"}
		}
	}
	names := first.classes
	switch {
	case first.kind == texts:
		return sortedNames(path, lists)
	case len(names) > 0:
	case first.kind == booleans:
		names = []string{"false", "true"}
	default:
		for i := range slices.Max(first.labels) + 1 {
			names = append(names, strconv.Itoa(int(i)))
		}
	}
	for _, r := range lists {
		if most := slices.Max(r.labels); int(most) >= len(names) {
			return nil, &images.FormatError{Path: path, Got: fmt.Sprintf("label %d", most),
				Want: fmt.Sprintf("0 to %d, the classes for training", len(names)-1)}
		}
	}
	return names, nil
}

// sortedNames numbers the labels of training by their order.
func sortedNames(path string, lists []*rows) ([]string, error) {
	var names []string
	for name := range lists[0].names {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, r := range lists {
		number := make([]int32, len(r.names))
		for name, y := range r.names {
			at, ok := slices.BinarySearch(names, name)
			if !ok {
				at = slices.IndexFunc(names, func(known string) bool { return sameName(known, name) })
			}
			if at < 0 {
				return nil, &images.FormatError{Path: path, Got: fmt.Sprintf("label %q for testing only", name),
					Want: "the labels for training"}
			}
			number[y] = int32(at)
		}
		for i, y := range r.labels {
			r.labels[i] = number[y]
		}
	}
	return names, nil
}

// sameName reports whether two names are the same but for the form of Unicode.
func sameName(a, b string) bool { return norm.NFC.String(a) == norm.NFC.String(b) }
