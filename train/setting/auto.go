package setting

import (
	"fmt"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// Auto is the value of a setting that the program chooses.
const Auto = "auto"

// AutoFloat is a number, or auto for one that the program chooses.
type AutoFloat struct {
	Auto bool
	V    float64
}

func (a AutoFloat) String() string {
	if a.Auto {
		return Auto
	}
	return strconv.FormatFloat(a.V, 'g', -1, 64)
}

func (a *AutoFloat) Set(s string) error {
	if s == Auto {
		*a = AutoFloat{Auto: true}
		return nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%q is neither a number nor auto", s)
	}
	*a = AutoFloat{V: v}
	return nil
}

// Type is the name of the type in help texts.
func (AutoFloat) Type() string { return "float|auto" }

// MarshalYAML writes the number, or auto.
func (a AutoFloat) MarshalYAML() (any, error) {
	if a.Auto {
		return Auto, nil
	}
	return a.V, nil
}

// UnmarshalYAML reads a number or auto.
func (a *AutoFloat) UnmarshalYAML(n ast.Node) error { return a.Set(Plain(n)) }

// Plain returns the text of a YAML value without quotes.
func Plain(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return n.String()
}
