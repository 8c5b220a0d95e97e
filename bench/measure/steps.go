package measure

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
)

// StepTable compares the steps of several algorithms, measured in one run.
type StepTable []StepReport

// Steps measures one setup after the other.
func Steps(ctx context.Context, options []StepOptions) (StepTable, error) {
	var table StepTable
	for _, o := range options {
		r, err := Step(ctx, o)
		if err != nil {
			return table, fmt.Errorf("measure: measure a step of %s: %w", o.Setup.Config.Algo, err)
		}
		table = append(table, r)
	}
	return table, nil
}

// String returns the table as text: a line per algorithm, relative to the first.
func (t StepTable) String() string {
	if len(t) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "d = %d, %d agents, batch %d, one core; times per agent and iteration\n", t[0].Dim, t[0].Agents,
		t[0].Batch)
	tw := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "algorithm\tstep µs\tgradient µs\tvectors µs\tvectors %%\trest %%\tstep / %s\t\n", t[0].Algo)
	for _, r := range t {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t\n", r.Algo, us(r.Step), us(r.Gradient), us(r.Vectors),
			100*r.VectorShare(), 100*r.RestShare, float64(r.Step)/float64(t[0].Step))
	}
	_ = tw.Flush() // a strings.Builder returns no error
	return b.String()
}

// VectorShare returns the share of the vector kernels in a step.
func (r StepReport) VectorShare() float64 { return float64(r.Vectors) / float64(r.Step) }
