package bench

import (
	"context"
	"fmt"
	"io"
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
			return table, fmt.Errorf("bench: measure a step of %s: %w", o.Setup.Config.Algo, err)
		}
		table = append(table, r)
	}
	return table, nil
}

// WriteTo prints the table as text: a line per algorithm, relative to the first.
func (t StepTable) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	if len(t) == 0 {
		return 0, nil
	}
	fmt.Fprintf(c, "d = %d, %d agents, batch %d, one core; times per agent and iteration\n", t[0].Dim, t[0].Agents,
		t[0].Batch)
	tw := tabwriter.NewWriter(c, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "algorithm\tstep µs\tgradient µs\tvectors µs\tvectors %%\trest %%\tstep / %s\t\n", t[0].Algo)
	for _, r := range t {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t\n", r.Algo, us(r.Step), us(r.Gradient), us(r.Vectors),
			100*r.VectorShare(), 100*r.RestShare, float64(r.Step)/float64(t[0].Step))
	}
	if err := tw.Flush(); err != nil {
		return c.n, err
	}
	return c.n, c.err
}

// VectorShare returns the share of the vector kernels in a step.
func (r StepReport) VectorShare() float64 { return float64(r.Vectors) / float64(r.Step) }

// counter counts written bytes and keeps the first error.
type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	if c.err == nil {
		c.err = err
	}
	return n, err
}
