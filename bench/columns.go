package bench

import (
	"fmt"
	"slices"

	"fspda/train"
	"fspda/train/metric"
)

// columnNeeds maps the condition of a column, in the words of its Needs, to a check of a run.
var columnNeeds = map[string]func(s *train.Setup) bool{
	"data that is text": func(s *train.Setup) bool { return s.Set.Text != nil },
	"data that is text, with a known tokenizer": func(s *train.Setup) bool {
		return s.Set.Text != nil && s.Set.BytesPerToken() > 0
	},
	"virtual time, which links give":           func(s *train.Setup) bool { return s.Config.Stored().HasVirtualTime() },
	"metrics full":                             fullMetrics,
	"an algorithm with duals":                  hasDuals,
	"an algorithm with duals and metrics full": func(s *train.Setup) bool { return hasDuals(s) && fullMetrics(s) },
	"precision fp16":                           func(s *train.Setup) bool { return s.Config.Precision == "fp16" },
	"clip_norm":                                func(s *train.Setup) bool { return s.Config.ClipNorm > 0 },
	"compress lattice(s,q)":                    func(s *train.Setup) bool { return s.Lattice != nil },
}

func fullMetrics(s *train.Setup) bool { return s.FullMetrics() }

// hasDuals reports whether the algorithm keeps vectors whose sum is zero.
func hasDuals(s *train.Setup) bool {
	return s.Traits.Tracked.Name != ""
}

// lacking returns the columns that a run does not fill, each with the settings that would fill it.
func lacking(s *train.Setup) map[string]string {
	all := map[string]string{}
	for _, c := range metric.Described() {
		if c.Needs != "" && !columnNeeds[c.Needs](s) {
			all[c.Name] = c.Needs
		}
	}
	return all
}

// checkColumns refuses a metric that a run cannot have, and a panel whose columns none of its runs
// fills.
func (c *Campaign) checkColumns(plans []planned) error {
	for _, p := range plans {
		if needs := p.lacks[c.Metric]; needs != "" {
			return &train.ConfigError{Key: "metric", Got: c.Metric, Want: fmt.Sprintf(
				"run %s has no numbers of it: they need %s; choose another metric", p.job.Name, needs)}
		}
	}
	for i := range c.Panels {
		p := &c.Panels[i]
		column, err := p.Column()
		if err != nil {
			return err
		}
		shown := slices.DeleteFunc(slices.Clone(plans),
			func(q planned) bool { return p.Group != "" && q.job.Group != p.Group })
		for _, name := range []string{column, p.X} {
			fills := func(q planned) bool { return q.lacks[name] == "" }
			if len(shown) > 0 && !slices.ContainsFunc(shown, fills) {
				return &train.ConfigError{Key: "panels: " + name, Want: fmt.Sprintf("no run that the panel shows has "+
					"numbers of it: they need %s; choose another metric or x", shown[0].lacks[name])}
			}
		}
	}
	return nil
}
