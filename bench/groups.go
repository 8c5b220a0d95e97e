package bench

import (
	"fmt"

	"fspda/train"
)

// Columns returns the step sizes of a configuration over its run as the columns iteration, epoch,
// lr and eta.
func (f *ScheduleFigure) Columns(c train.Config) map[string][]float64 {
	s := train.Schedule{Alpha: c.Alpha, Eta: c.Eta.V, Cosine: c.Schedule == "cosine", Warmup: c.Warmup,
		PerEpoch: f.PerEpoch, Epochs: float64(c.Iterations) / f.PerEpoch}
	const points = 400
	columns := map[string][]float64{}
	for k := range points + 1 {
		t := k * (c.Iterations - 1) / points
		alpha, eta := s.At(t)
		for name, v := range map[string]float64{"iteration": float64(t), "epoch": float64(t+1) / f.PerEpoch,
			"lr": alpha, "eta": eta} {
			columns[name] = append(columns[name], v)
		}
	}
	return columns
}

// Groups lists the groups of the figure's runs; it is a single empty name if they have none.
func (f *Figure) Groups() []string {
	var groups []string
	for _, r := range f.Runs {
		if len(groups) == 0 || groups[len(groups)-1] != r.Group {
			groups = append(groups, r.Group)
		}
	}
	return groups
}

// IndexInGroup returns the position of a run in its group, from 1. It determines the colour of the
// curve.
func (f *Figure) IndexInGroup(name string) int {
	index := map[string]int{}
	for _, r := range f.Runs {
		index[r.Group]++
		if r.Name == name {
			return index[r.Group]
		}
	}
	return 0
}

// exchanged describes how much a run exchanges, for the legend; scaling may have changed it.
func exchanged(c train.Config) string {
	name, p := probability(c.Edges)
	switch {
	case c.LocalSteps > 0:
		return fmt.Sprintf(", %d steps", c.LocalSteps)
	case c.Masked():
		return fmt.Sprintf(" %.3g %%", 100*c.Density)
	case name != "":
		return fmt.Sprintf(", p %.3g", p)
	case c.Algo == "swarm" && c.Edges == "matching":
		return ", matchings"
	}
	return ""
}
