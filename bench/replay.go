package bench

import (
	"embed"
	"slices"
)

//go:embed replays/*.yaml
var replayFiles embed.FS

// Replays returns the experiments of other papers, each a figure whose runs have printed values, by
// name.
func Replays() ([]*Figure, error) {
	return parseAll(replayFiles, "replays", parseFigure)
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
