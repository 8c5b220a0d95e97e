package bench

import (
	"context"
	"fmt"
	"io"
	"time"

	"fspda/train"
)

// CardStepOptions say which training to measure on a card. Of StepOptions, Products is not used.
type CardStepOptions struct {
	Card
	StepOptions
	Load func() (run func() error, _ error) // makes ready what computes the gradient of one agent once
}

// CardStepReport is what an iteration of training costs on a card.
type CardStepReport struct {
	What       string        `json:"what"`
	Card       string        `json:"card"`
	Precision  string        `json:"precision"`
	Agents     int           `json:"agents"`
	Batch      int           `json:"batch"`
	Dim        int           `json:"dim"`
	Iterations int           `json:"iterations"`   // measured
	Iteration  time.Duration `json:"iteration_ns"` // of all agents, in the fastest stretch, on the host's clock
	PerSecond  float64       `json:"iterations_s"`
	Images     float64       `json:"images_s"`
	// of one agent by itself, over and over with the same batch, on the card's clock
	Gradient time.Duration `json:"gradient_ns"`
	// an iteration of all agents whose gradients cost nothing: vectors, masks, messages
	Exchange time.Duration `json:"exchange_ns"`
	// share of an iteration in which the card computes no gradient and would not be exchanging
	Idle float64 `json:"idle"`
}

// CardStep trains on a card as it is, and once with gradients that cost nothing.
func CardStep(ctx context.Context, o CardStepOptions) (CardStepReport, error) {
	c := o.Setup.Config
	r := CardStepReport{What: fmt.Sprintf("%s, %s", c.Algo, c.Model), Card: o.What, Precision: o.Precision,
		Agents: c.Agents, Batch: c.Batch, Dim: o.Setup.Dim}
	if o.Each <= 0 {
		return r, &train.ConfigError{Key: "time", Got: o.Each.String(), Want: "expected a time above 0, such as 3s"}
	}
	m, err := o.iterate(ctx, o.Setup, o.Card.Device, o.Model, noKernels)
	if err != nil {
		return r, err
	}
	agents := time.Duration(c.Agents)
	r.Iterations, r.Iteration = int(m.steps)/c.Agents, m.fastest.at*agents
	r.PerSecond = 1 / r.Iteration.Seconds()
	r.Images = r.PerSecond * float64(c.Agents*c.Batch)
	bare := *o.Setup
	bare.Config.Batch = 1 // what makes batches keeps the card waiting, or nobody
	if m, err = o.iterate(ctx, &bare, o.Card.Device, noopModel{buffered(o.Model)}, noKernels); err != nil {
		return r, err
	}
	r.Exchange = m.fastest.at * agents
	run, err := o.Load()
	if err != nil {
		return r, err
	}
	if r.Gradient, err = o.gradientTime(run); err != nil {
		return r, err
	}
	r.Idle = max(0, 1-float64(agents*r.Gradient+r.Exchange)/float64(r.Iteration))
	return r, nil
}

// gradientTime is the time of a gradient that is computed over and over, in the fastest of some turns.
func (o CardStepOptions) gradientTime(run func() error) (best time.Duration, err error) {
	if err := repeat(run, 3); err != nil {
		return 0, err
	}
	for turn := range windows {
		took, err := o.turn(run)
		if err != nil {
			return 0, err
		}
		if each := took / runsPerTurn; turn == 0 || each < best {
			best = each
		}
	}
	return best, nil
}

// WriteTo prints the report for people.
func (r CardStepReport) WriteTo(w io.Writer) (int64, error) {
	n, err := fmt.Fprintf(w, `%s: d = %d, %d agents × %d on %s, %s, %d iterations measured
  iteration        %10.1f µs   of all agents, %.0f a second, %.0f images a second
    gradient       %10.1f µs   of one agent by itself, on the card's clock
    exchange       %10.1f µs   an iteration whose gradients cost nothing
    idle           %10.2f %%    the rest: the card waits for its host (target under 2 %%)
`, r.What, r.Dim, r.Agents, r.Batch, r.Card, r.Precision, r.Iterations, us(r.Iteration), r.PerSecond, r.Images, us(r.Gradient), us(r.Exchange), 100*r.Idle)
	return int64(n), err
}
