package bench

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/internal/bounded"
	"fspda/train"
)

// ReadFigure reads a figure of one's own from a YAML file of the form of those of the paper: common,
// the configuration of all runs, and runs, each with name and config. title, seeds, panels and
// flavours may be missing.
func ReadFigure(path string) (*Figure, error) {
	text, err := bounded.YAMLFile(path)
	if err != nil {
		return nil, &train.ConfigError{Key: "-c", Got: path, Err: err}
	}
	return parseFigure(path, text)
}

// figureForms are the keys of a figure.
var figureForms = []form{
	{"title", "My figure"}, {"about", "what it shows"}, {"common", "{iterations: 2000}"},
	{"flavours", "{printed: {alpha: 0.1}}"}, {"seeds", "[1, 2, 3]"},
	{"runs", "[{name: dsgd, config: {algo: dsgd}}], each with name, title, group, config, flavours, printed"},
	{"source", "the paper"}, {"panels", "[{title: Accuracy, metric: test_acc, model: mean, x: bits}]"},
}

// parseFigure parses a figure that is none of the paper's.
func parseFigure(path string, text []byte) (*Figure, error) {
	f := &Figure{own: true}
	if err := decode(path, text, f, figureForms); err != nil {
		return nil, err
	}
	f.ID = cmp.Or(f.ID, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
	f.Title = cmp.Or(f.Title, f.ID)
	if len(f.Panels) == 0 {
		f.Panels = []Panel{
			{Metric: "test_acc", Model: "mean", X: "iteration", Y: "linear"},
			{Metric: "train_loss", Model: "worst", X: "iteration", Y: "log"},
			{Metric: "consensus", X: "iteration", Y: "log"},
		}
	}
	for i := range f.Runs {
		if r := &f.Runs[i]; r.Title == "" {
			r.Title = r.Name
		}
	}
	if len(f.Runs) == 0 && f.Schedule == nil {
		return nil, &train.ConfigError{Key: path, Got: "has no runs",
			Want: "add runs: [{name: NAME, config: {algo: NAME}}]"}
	}
	if err := f.check(); err != nil {
		return nil, &train.ConfigError{Key: path, Err: err}
	}
	return f, nil
}

// Add adds the curve of an algorithm, NAME or NAME,key=value,...: to each group of the figure a run
// with the configuration of the group's first one but for the algorithm, what that cannot use, and the
// given keys.
func (f *Figure) Add(spec string) error {
	parts := splitOutside(spec)
	method := strings.TrimSpace(parts[0])
	if !slices.Contains(train.Algorithms(), method) {
		return unknownName("--with", method, train.Algorithms())
	}
	var config yaml.MapSlice
	title := method
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(p, "=")
		if !ok {
			return &train.ConfigError{Key: "--with", Got: spec, Want: "expected NAME,key=value, such as dsgd,theta=0.3"}
		}
		config = append(config, yaml.MapItem{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
		title += " " + strings.TrimPrefix(strings.TrimSpace(key), "params.") + "=" + strings.TrimSpace(value)
	}
	if f.Schedule != nil {
		return &train.ConfigError{Key: "--with", Got: spec, Want: "the figure draws step sizes and trains nothing"}
	}
	for _, group := range f.Groups() {
		at := slices.IndexFunc(f.Runs, func(r FigureRun) bool { return r.Group == group })
		like := f.Runs[at]
		name := plainName(strings.ReplaceAll(title, " ", "-"))
		if group != "" {
			name += "-" + plainName(group)
		}
		if slices.Contains(f.RunNames(), name) {
			return &train.ConfigError{Key: "--with", Got: spec,
				Want: "the figure has this curve: change a setting, as in " + method + ",alpha=0.1"}
		}
		f.Runs = append(f.Runs, FigureRun{Name: name, Title: title, Group: group, Config: config, like: &like,
			method: method})
	}
	return nil
}

// splitOutside splits at commas that are outside of parentheses.
func splitOutside(text string) (parts []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(' || r == '[' || r == '{':
			depth++
		case r == ')' || r == ']' || r == '}':
			depth--
		case r == ',' && depth == 0:
			parts, from = append(parts, text[from:i]), i+1
		}
	}
	return append(parts, text[from:])
}

// without removes runs, by name or by a part between dashes.
func (f *Figure) without(runs []FigureRun, names []string) ([]FigureRun, error) {
	for _, name := range names {
		if !slices.ContainsFunc(f.Runs, func(r FigureRun) bool { return r.matches(name) }) {
			return nil, unknownName("run", name, f.RunNames())
		}
	}
	left := slices.DeleteFunc(slices.Clone(runs), func(r FigureRun) bool {
		return slices.ContainsFunc(names, r.matches)
	})
	if len(left) == 0 {
		return nil, &train.ConfigError{Key: "--without", Got: strings.Join(names, ","), Want: "no run is left"}
	}
	return left, nil
}

// matches reports whether name is that of the run, or a part of it between dashes, such as sa of
// sa-sorted.
func (r FigureRun) matches(name string) bool {
	return r.Name == name || slices.Contains(strings.Split(r.Name, "-"), name)
}

// fitted returns the configuration of a run that Add made.
func (f *Figure) fitted(r FigureRun, variant string) (train.Config, error) {
	c, err := f.config(*r.like, variant)
	if err != nil {
		return c, err
	}
	c.FitTo(r.method)
	c.TakeExplicit()
	for _, item := range r.Config {
		text := fmt.Sprintf("%v: %s", item.Key, quotedYAML(fmt.Sprint(item.Value)))
		if err := c.Parse("--with "+r.method, []byte(text)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// KeyValue returns a pair key=value, as --set has them, as a line of YAML.
func KeyValue(pair string) (string, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok {
		return "", &train.ConfigError{Key: "--set", Got: fmt.Sprintf("%q", pair),
			Want: "expected key=value, such as batch=32"}
	}
	return strings.TrimSpace(key) + ": " + quotedYAML(value), nil
}

// quotedYAML quotes a text such as bernoulli(0.1).
func quotedYAML(v string) string {
	if strings.ContainsAny(v, "(:,") && !strings.HasPrefix(v, "[") && !strings.HasPrefix(v, "{") {
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	}
	return v
}
