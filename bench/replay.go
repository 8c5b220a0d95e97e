package bench

import (
	"embed"
	"fmt"
	"slices"

	"fspda/internal/bounded"
)

//go:embed replays/*.yaml
var replayFiles embed.FS

// Replays returns the experiments of other papers, each a figure whose runs have printed values, by
// name.
func Replays() ([]*Figure, error) {
	files, err := replayFiles.ReadDir("replays")
	if err != nil {
		return nil, err
	}
	var all []*Figure
	for _, file := range files {
		text, err := replayFiles.ReadFile("replays/" + file.Name())
		if err == nil {
			err = bounded.YAML(text)
		}
		if err != nil {
			return nil, err
		}
		f, err := parseFigure(file.Name(), text)
		if err != nil {
			return nil, fmt.Errorf("bench: replay %s: %w", file.Name(), err)
		}
		all = append(all, f)
	}
	return all, nil
}

// FindReplay returns the experiment of a name.
func FindReplay(name string) (*Figure, error) {
	all, err := Replays()
	if err != nil {
		return nil, err
	}
	names := []string{"base-graph"}
	for _, f := range all {
		if f.ID == name {
			return f, nil
		}
		names = append(names, f.ID)
	}
	return nil, unknownName("replay", name, names)
}

// HasPrinted reports whether a run of the figure has a printed value to compare with.
func (f *Figure) HasPrinted() bool {
	return slices.ContainsFunc(f.Runs, func(r FigureRun) bool { return r.Printed != nil })
}
