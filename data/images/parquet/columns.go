package parquet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"fspda/data/images"
)

// kind is the type of the values of a column.
type kind string

const (
	integers kind = "integers"
	booleans kind = "booleans"
	texts    kind = "strings or bytes"
	others   kind = "another type"
)

// column is a column of a table; one within a struct is named STRUCT.COLUMN.
type column struct {
	name string
	kind kind
}

// value is a value of a column: a number, or bytes that are valid until the table is closed.
type value struct {
	null bool
	n    int64
	b    []byte
}

// table is an open file.
type table interface {
	columns() []column
	// features is the JSON that the datasets library stores, or "".
	features() string
	// groups are the numbers of rows of each part of the table.
	groups() []int
	// check refuses limits that a column exceeds, and returns the bytes that reading it in any order
	// takes.
	check(column int) (int64, error)
	// scan visits the values of a group in order.
	scan(group, column int, visit func(row int, v value) error) error
	// at returns one value, and keeps those beside it in the cache.
	at(c *cache, group, column, row int) (value, error)
	Close() error
}

// Usual names of the columns.
var (
	imageColumns = []string{"image", "img", "jpg", "png"}
	labelColumns = []string{"label", "labels", "cls", "fine_label"}
)

// info is the description of a table by the datasets library.
type info struct {
	Info struct {
		Features map[string]struct {
			Type  string   `json:"_type"`
			Names []string `json:"names"`
		} `json:"features"`
	} `json:"info"`
}

// named returns the columns of a type.
func (f *info) named(kind string) (names []string) {
	for name, c := range f.Info.Features {
		if c.Type == kind {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shard is a table with the columns of a picture.
type shard struct {
	table
	name                 string
	content, path, label int // columns; path is -1 if there is none
	kind                 kind
	classes              []string // class names that the datasets library stored, or nil
	memory               int64    // bytes that reading the pictures takes
}

// newShard finds the columns: the one that was asked for, or the first usual one.
func newShard(name string, t table, o images.Options) (*shard, error) {
	s := &shard{table: t, name: name}
	columns := t.columns()
	find := func(names []string, of ...kind) int {
		for _, n := range names {
			at := slices.IndexFunc(columns, func(c column) bool { return c.name == n && slices.Contains(of, c.kind) })
			if at >= 0 {
				return at
			}
		}
		return -1
	}
	var library info
	_ = json.Unmarshal([]byte(t.features()), &library) // if this fails, the usual names remain
	imageNames := append(library.named("Image"), imageColumns...)
	labelNames := append(library.named("ClassLabel"), labelColumns...)
	if o.ImageColumn != "" {
		imageNames = []string{o.ImageColumn}
	}
	if o.LabelColumn != "" {
		labelNames = []string{o.LabelColumn}
	}
	var within []string
	for _, n := range imageNames {
		within = append(within, n+".bytes", n)
	}
	s.content, s.label, s.path = find(within, texts), find(labelNames, integers, booleans, texts), -1
	if s.content < 0 || s.label < 0 {
		return nil, missing(name, columns, o)
	}
	if of, ok := strings.CutSuffix(columns[s.content].name, ".bytes"); ok {
		s.path = find([]string{of + ".path"}, texts)
	}
	s.kind, s.classes = columns[s.label].kind, library.Info.Features[columns[s.label].name].Names
	var err error
	s.memory, err = t.check(s.content)
	return s, err
}

// missing says which columns there are.
func missing(name string, columns []column, o images.Options) error {
	image, label := "image.bytes or "+strings.Join(imageColumns, ", "), strings.Join(labelColumns, ", ")
	if o.ImageColumn != "" {
		image = o.ImageColumn
	}
	if o.LabelColumn != "" {
		label = o.LabelColumn
	}
	hint := "name them with --image-column and --label-column"
	if slices.Contains(columns, column{"text", texts}) {
		hint += "; a table of texts is prepared by fspda data prepare text"
	}
	return &images.FormatError{Path: name, Got: "the columns " + listed(columns),
		Want: fmt.Sprintf("%s (%s) and %s (%s, %s or strings)", image, texts, label, integers, booleans), Hint: hint}
}
