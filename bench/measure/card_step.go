package measure

import (
	"context"
	"fmt"
	"time"

	"fspda/train"
)

// CardStepOptions configures [CardStep]. StepOptions.Products is ignored.
type CardStepOptions struct {
	Card
	StepOptions
	Load func() (run func() error, _ error) // returns a function that computes one gradient of one agent
}

// CardStepReport is the cost of an iteration of training on a device.
type CardStepReport struct {
	What       string        `json:"what"`
	Card       string        `json:"card"`
	Precision  string        `json:"precision"`
	Agents     int           `json:"agents"`
	Batch      int           `json:"batch"`
	Dim        int           `json:"dim"`
	Iterations int           `json:"iterations"`   // measured
	Iteration  time.Duration `json:"iteration_ns"` // iteration of all agents in the fastest window, on the host's clock
	PerSecond  float64       `json:"iterations_s"`
	Images     float64       `json:"images_s"`
	// gradient of one agent, repeated with the same batch, on the device's clock
	Gradient time.Duration `json:"gradient_ns"`
	// iteration of all agents with no-op gradients: vectors, masks, messages
	Exchange time.Duration `json:"exchange_ns"`
	// share of an iteration in which the device is idle: 1 - (Agents·Gradient + Exchange) /
	// Iteration, at least 0
	Idle float64 `json:"idle"`
}

// CardStep measures training as it is, and training with no-op gradients.
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
	bare.Config.Batch = 1 // batch preparation is not part of the exchange
	m, err = o.iterate(ctx, &bare, o.Card.Device, wrappedModel{o.Model, noGradient}, noKernels)
	if err != nil {
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

// gradientTime returns the time of a gradient, in the fastest of several turns.
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

func (r CardStepReport) String() string {
	return fmt.Sprintf(`%s: d = %d, %d agents × %d on %s, %s, %d iterations measured
  iteration        %10.1f µs   of all agents, %.0f a second, %.0f images a second
    gradient       %10.1f µs   of one agent by itself, on the card's clock
    exchange       %10.1f µs   an iteration whose gradients cost nothing
    idle           %10.2f %%    the rest: the card waits for its host (target under 2 %%)
`, r.What, r.Dim, r.Agents, r.Batch, r.Card, r.Precision, r.Iterations, us(r.Iteration), r.PerSecond, r.Images,
		us(r.Gradient), us(r.Exchange), 100*r.Idle)
}
