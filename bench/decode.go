package bench

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
	"fspda/train"
	"fspda/train/config"
)

// form is a key of a file and an example of its value.
type form struct{ key, example string }

// topKey matches the start of a line with a key of the file itself.
var topKey = regexp.MustCompile(`^([A-Za-z_]+)[ \t]*:`)

// decode reads an experiment. Errors name the line and the key, and show the value.
func decode(path string, text []byte, to *Experiment) error {
	if err := bounded.YAML(text); err != nil {
		return &train.ConfigError{Key: path, Err: err}
	}
	names := make([]string, len(forms))
	for i, f := range forms {
		names[i] = f.key
	}
	all := "the keys are " + strings.Join(names, ", ")
	var content any
	if yaml.Unmarshal(text, &content) == nil && content == nil {
		return &train.ConfigError{Key: path, Got: "is empty", Want: all}
	}
	err := yaml.UnmarshalWithOptions(text, to, yaml.Strict(), yaml.UseOrderedMap())
	var at yaml.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &at) || at.GetToken() == nil:
		return &train.ConfigError{Key: path, Err: err}
	}
	token := at.GetToken()
	lines := strings.Split(string(text), "\n")
	line := min(max(token.Position.Line, 1), len(lines))
	where := fmt.Sprintf("%s: line %d", path, line)
	owner, shown := keyAt(lines[:line], slices.Concat(forms, oldForms)), all
	if owner.example != "" {
		shown = fmt.Sprintf("expected %s: %s", owner.key, owner.example)
	}
	var unknown *yaml.UnknownFieldError
	switch {
	case errors.As(err, &unknown):
		if near := config.Nearest(token.Value, names); owner.example == "" && near != "" {
			shown = fmt.Sprintf("did you mean %q? %s", near, all)
		}
		return &train.ConfigError{Key: fmt.Sprintf("%s: key %q", where, token.Value), Got: "does not exist",
			Want: shown}
	case strings.HasPrefix(strings.TrimLeft(lines[line-1], " "), "\t"):
		return &train.ConfigError{Key: where, Got: "begins with a tab", Want: "YAML is indented with spaces"}
	}
	return &train.ConfigError{Key: where, Err: messageOf{at}, Want: shown}
}

// keyAt returns the key of the file to which the last of its lines belongs; none: an empty form.
func keyAt(lines []string, forms []form) form {
	var name string
	for _, l := range lines {
		if m := topKey.FindStringSubmatch(l); m != nil {
			name = m[1]
		}
	}
	if at := slices.IndexFunc(forms, func(f form) bool { return f.key == name }); at >= 0 {
		return forms[at]
	}
	return form{}
}

// messageOf is an error of YAML without the lines around it.
type messageOf struct{ of yaml.Error }

func (m messageOf) Error() string { return m.of.GetMessage() }
