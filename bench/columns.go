package bench

import (
	"fmt"
	"slices"
	"strings"

	"fspda/train"
	"fspda/train/config"
)

// columnNeeds lists the columns that are empty, or always zero, in runs of some settings.
var columnNeeds = []struct {
	columns string
	have    func(s *train.Setup) bool
	needs   string
}{
	{"perplexity", func(s *train.Setup) bool { return s.Set.Text != nil }, "data that is text"},
	{"bits_per_byte", func(s *train.Setup) bool { return s.Set.Text != nil && s.Set.BytesPerToken() > 0 },
		"data that is text, with a known tokenizer"},
	{"virtual_time virtual_time_mean", func(s *train.Setup) bool { return s.Config.Stored().HasVirtualTime() },
		"virtual time, which links give"},
	{"grad_sq_worst grad_sq_avg", fullMetrics, "metrics full"},
	{"dual_sum", hasDuals, "an algorithm with duals"},
	{"dual_track", func(s *train.Setup) bool { return hasDuals(s) && fullMetrics(s) },
		"an algorithm with duals and metrics full"},
	{"loss_scale skipped_grads", func(s *train.Setup) bool { return s.Config.Precision == "fp16" }, "precision fp16"},
	{"clipped_grads", func(s *train.Setup) bool { return s.Config.ClipNorm > 0 }, "clip_norm"},
	{"far_decodes largest_decode", func(s *train.Setup) bool {
		return strings.HasPrefix(string(s.Config.Compress),
			"lattice")
	},
		"compress lattice(s,q)"},
}

func fullMetrics(s *train.Setup) bool { return s.Config.Metrics == config.MetricsFull }

// hasDuals reports whether the algorithm keeps vectors whose sum is zero.
func hasDuals(s *train.Setup) bool {
	return s.Traits.Tracked.Name != ""
}

// lacking returns the columns that a run does not fill, each with the settings that would fill it.
func lacking(s *train.Setup) map[string]string {
	all := map[string]string{}
	for _, c := range columnNeeds {
		if !c.have(s) {
			for _, name := range strings.Fields(c.columns) {
				all[name] = c.needs
			}
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
