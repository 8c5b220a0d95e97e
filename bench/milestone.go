package bench

import (
	"fmt"
	"math"
	"slices"

	"fspda/train"
)

// Milestones lists the test accuracies whose cost in bits a table shows.
var Milestones = []float64{0.5, 0.7, 0.8, 0.9, 0.95}

// goal is the quantity that runs are to reach: an accuracy or, of texts, a perplexity.
type goal struct {
	quantity string
	names    []string // names of the models that are scored
	// scores are the numbers that are to be at least the level: accuracies, or negative losses.
	scores []func(train.Row) train.Num
}

// milestone is an accuracy or a perplexity to reach.
type milestone struct {
	label, name string  // The words of heads of tables, and of names of columns.
	least       float64 // the least score that reaches it
}

// IsText reports whether the run trains a language model.
func (o *Outcome) IsText() bool {
	return o != nil && slices.ContainsFunc(o.Rows, func(r train.Row) bool { return r.Perplexity > 0 })
}

func (t *Table) isText() bool { return slices.ContainsFunc(t.Outcomes, (*Outcome).IsText) }

func (t *Table) goal() goal {
	if t.isText() {
		return goal{"perplexity", []string{"mean_model", "mean_of_agents"}, []func(train.Row) train.Num{
			func(r train.Row) train.Num { return -r.TestLossAvg },
			func(r train.Row) train.Num { return -r.TestLossMean }}}
	}
	return goal{"test accuracy", []string{"mean_model", "worst_agent"},
		[]func(train.Row) train.Num{meanAccuracy, worstAccuracy}}
}

func (t *Table) milestones() (all []milestone) {
	switch {
	case t.isText() && len(t.Levels) == 0:
		return perplexities(t.perplexityRange())
	case t.isText():
		for _, l := range t.Levels {
			all = append(all, perplexity(l))
		}
		return all
	}
	levels := t.Levels
	if len(levels) == 0 {
		levels = Milestones
	}
	for _, l := range levels {
		all = append(all, milestone{fmt.Sprintf("%g %%", 100*l), fmt.Sprintf("%g%%", 100*l), l})
	}
	return all
}

func perplexity(level float64) milestone {
	return milestone{fmt.Sprintf("perplexity %g", level), fmt.Sprintf("perplexity_%g", level), -math.Log(level)}
}

// perplexityRange returns the least perplexity of a mean model, and the largest one at the first
// evaluation of a run.
func (t *Table) perplexityRange() (least, first float64) {
	least = math.Inf(1)
	for _, o := range t.Outcomes {
		if o == nil || len(o.Rows) == 0 {
			continue
		}
		first = math.Max(first, float64(o.Rows[0].Perplexity))
		for _, r := range o.Rows {
			if p := float64(r.Perplexity); p > 0 {
				least = math.Min(least, p)
			}
		}
	}
	return least, first
}

// perplexities returns the five least round perplexities that runs come to between the first and
// the least one, the largest first.
func perplexities(least, first float64) (all []milestone) {
	if !(least >= 1 && least < 1e12) {
		return nil
	}
	for decade := 1.0; decade < first; decade *= 10 {
		for _, m := range []float64{1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
			if level := m * decade; level >= least && level < first && level > 1 && len(all) < 5 {
				all = append(all, perplexity(level))
			}
		}
	}
	slices.Reverse(all)
	return all
}
