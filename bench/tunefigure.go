package bench

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
)

//go:embed figures/tuned/*.yaml
var tuningFiles embed.FS

// TuningFigures returns the figures that compare tuned methods, by name.
func TuningFigures() ([]*Tuning, error) {
	files, err := tuningFiles.ReadDir("figures/tuned")
	if err != nil {
		return nil, err
	}
	var all []*Tuning
	for _, file := range files {
		t, err := FindTuning(strings.TrimSuffix(file.Name(), ".yaml"))
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// FindTuning returns the figure of this id, which is the name of its file; nil if there is none.
func FindTuning(id string) (*Tuning, error) {
	text, err := tuningFiles.ReadFile("figures/tuned/" + id + ".yaml")
	if err != nil {
		return nil, nil // no figure has this name
	}
	t, err := parseTuning("figure "+id, text)
	if err != nil {
		return nil, err
	}
	t.kept = true
	return t, nil
}

// Keep keeps the methods that only names, all if it is empty, but for those that without names.
func (t *Tuning) Keep(only, without []string) error {
	names := t.Names()
	for _, name := range slices.Concat(only, without) {
		if !slices.Contains(names, name) {
			return unknownName("method", name, names)
		}
	}
	t.Methods = slices.DeleteFunc(t.Methods, func(m TunedMethod) bool {
		return len(only) > 0 && !slices.Contains(only, m.Name) || slices.Contains(without, m.Name)
	})
	if len(t.Methods) == 0 {
		return &train.ConfigError{Key: "--without", Want: "no method is left"}
	}
	return nil
}

// Names lists the methods.
func (t *Tuning) Names() (names []string) {
	for _, m := range t.Methods {
		names = append(names, m.Name)
	}
	return names
}

// Groups lists the groups of methods, in order; one without a name if there are none.
func (t *Tuning) Groups() (groups []string) {
	for _, m := range t.Methods {
		if !slices.Contains(groups, m.Group) {
			groups = append(groups, m.Group)
		}
	}
	return groups
}

// LinksText is the network of the tuning as a file of links.
func (t *Tuning) LinksText() (string, error) {
	text, err := yaml.Marshal(t.Network)
	if err != nil {
		return "", fmt.Errorf("bench: write network: %w", err)
	}
	return string(text), nil
}

// IndexInGroup is the number of a method within its group.
func (t *Tuning) IndexInGroup(i int) (at int) {
	for _, m := range t.Methods[:i] {
		if m.Group == t.Methods[i].Group {
			at++
		}
	}
	return at
}

// Algo is the algorithm of a method.
func (t *Tuning) Algo(i int) string {
	c, _, _ := t.config(t.Methods[i], nil) // check has made sure that there is no error
	return c.Algo
}

// Column is the column of the metrics that curves show: the metric, or the accuracy that was to be
// reached.
func (t *Tuning) Column() string {
	if t.metric.reach != "" {
		return "test_acc_avg"
	}
	return t.Metric
}

// Set gives all runs another data set, its folder, and keys, each as key=value. Empty texts change
// nothing.
func (t *Tuning) Set(data, folder string, pairs []string) error {
	if data != "" {
		pairs = append([]string{"data=" + data}, pairs...)
	}
	if folder != "" {
		pairs = append([]string{"data_dir=" + folder}, pairs...)
	}
	for _, p := range pairs {
		line, err := KeyValue(p)
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "seed:") {
			return &train.ConfigError{Key: "--set", Got: fmt.Sprintf("%q", p), Want: "has no effect: each run has " +
				"one of the seeds of the search, or of those that --seeds reports"}
		}
		t.last = append(t.last, line)
	}
	return nil
}
