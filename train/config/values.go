package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"fspda/train/setting"
)

// auto is the value of a key whose value Resolve chooses.
const auto = setting.Auto

// AutoFloat is a number, or auto for one that Resolve chooses.
type AutoFloat = setting.AutoFloat

// chosen is the default of numbers that Resolve chooses.
var chosen = AutoFloat{Auto: true}

// Widths are the widths of the hidden layers of an mlp.
type Widths []int

func (w Widths) String() string {
	if len(w) == 0 {
		return "none"
	}
	s := make([]string, len(w))
	for i, v := range w {
		s[i] = strconv.Itoa(v)
	}
	return strings.Join(s, ",")
}

// Set reads "100", "256,128" or "none".
func (w *Widths) Set(s string) error {
	*w = Widths{}
	if s == "none" {
		return nil
	}
	for part := range strings.SplitSeq(s, ",") {
		v, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || v < 1 {
			return fmt.Errorf("%q is not a list of positive widths such as 100 or 256,128, or none", s)
		}
		*w = append(*w, v)
	}
	return nil
}

// UnmarshalYAML reads a list, or a text in the form of Set.
func (w *Widths) UnmarshalYAML(n ast.Node) error {
	text := setting.Plain(n)
	if _, ok := n.(*ast.SequenceNode); ok {
		text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("[], \n\t", r) }),
			",")
		text = cmp.Or(strings.TrimPrefix(strings.ReplaceAll(text, "-,", ""), "-,"), "none")
	}
	return w.Set(text)
}

// Type is the name of the type in help texts.
func (Widths) Type() string { return "widths" }
