package parquet

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"fspda/data/images"
)

// errStop ends a scan.
var errStop = errors.New("stop")

// Texts returns the strings of a column of a Parquet file, in the order of the rows. Rows without a
// value are left out. The bytes stay valid.
func Texts(name, of string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		err := eachText(name, of, func(b []byte) error {
			if !yield(append([]byte{}, b...), nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

func eachText(name, of string, visit func([]byte) error) error {
	t, err := openTable(name, ".parquet")
	if err != nil {
		return err
	}
	defer t.Close() // read only: nothing to lose
	at := slices.IndexFunc(t.columns(), func(c column) bool { return c.name == of })
	if at < 0 || t.columns()[at].kind != texts {
		return &images.FormatError{Path: name, Got: "the columns " + listed(t.columns()),
			Want: fmt.Sprintf("%s (%s)", of, texts), Hint: "name the column of the texts with --column"}
	}
	if _, err := t.check(at); err != nil {
		return err
	}
	for g := range t.groups() {
		err := t.scan(g, at, func(_ int, v value) error {
			if v.null {
				return nil
			}
			return visit(v.b)
		})
		switch {
		case errors.Is(err, errStop):
			return err
		case err != nil:
			return damaged(name, err)
		}
	}
	return nil
}

// HasTexts reports whether a Parquet file has a column of strings of a name, and none of pictures.
func HasTexts(name, of string) bool {
	t, err := openTable(name, ".parquet")
	if err != nil {
		return false
	}
	defer t.Close() // read only: nothing to lose
	if _, err := newShard(name, t, images.Options{}); err == nil {
		return false
	}
	return slices.ContainsFunc(t.columns(), func(c column) bool { return c.name == of && c.kind == texts })
}

// listed names columns with their types.
func listed(columns []column) string {
	var have []string
	for _, c := range columns {
		have = append(have, fmt.Sprintf("%s (%s)", c.name, c.kind))
	}
	return strings.Join(have, ", ")
}
