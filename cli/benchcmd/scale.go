package benchcmd

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"fspda/bench/measure"
	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/train"
	"fspda/train/config"
	"fspda/train/memory"
)

func newBenchScale() *cobra.Command {
	c := train.Default()
	c.Batch, c.Sampling, c.Graph, c.Momentum, c.WeightDecay = 32, "iid", "ring", 0, 1e-4
	c.EvalPoints, c.EvalAgents, c.Metrics, c.Checkpoint = 1, 1, "test", 0
	c.DataTrain, c.DataTest = 20000, 500
	o := measure.AgentsOptions{}
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Memory and time of a step of 10 to 10,000 agents in this process",
		Long: `Memory and time of a step of 10 to 10,000 agents in this process, with the network of figure 1 on
built-in data.
The memory is the largest that the process has had in memory; the forecast is the one with which a run is refused that
does not fit.`,
		Example: `  fspda bench scale
  fspda bench scale --algo fspda-async --counts 10,100,1000
  fspda bench scale --data mnist --data-dir DIR`,
	}
	fs := cmd.Flags()
	setup.ConfigFlags(fs, &c)
	fs.IntSliceVar(&o.Counts, "counts", []int{10, 100, 1000, 10000}, "numbers of agents, ascending")
	fs.IntVar(&o.Steps, "steps", 300000, "steps of all agents together, about")
	return command.Report(cmd, func(ctx context.Context) (fmt.Stringer, error) {
		for flag, by := range map[string]string{"agents": "counts", "iterations": "steps"} {
			if fs.Changed(flag) {
				return nil, command.UsageErrorf("--%s has no effect on bench scale: --%s sets it", flag, by)
			}
		}
		if len(o.Counts) == 0 || o.Counts[0] < 1 || !slices.IsSorted(o.Counts) {
			return nil, config.Invalid("counts", o.Counts, "expected ascending numbers from 1 on")
		}
		if o.Steps < 1 {
			return nil, config.Invalid("steps", o.Steps, "expected at least 1")
		}
		o.Open = func(agents, iterations int) (measure.AgentsRun, error) { return openScale(c, agents, iterations) }
		o.Progress = func(r measure.AgentsRow) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%d agents: %.1f µs a step, %.0f MB\n", r.Agents, r.Micros,
				float64(r.Peak)/1e6)
		}
		return measure.Agents(ctx, o)
	})
}

func openScale(c train.Config, agents, iterations int) (r measure.AgentsRun, err error) {
	c.Agents, c.Iterations = agents, iterations
	if err := c.Check(); err != nil {
		return r, err
	}
	dev, err := setup.OpenDevices(c, setup.AgentThreads(c), agents)
	if err != nil {
		return r, err
	}
	s, m, err := setup.Prepare(c, dev)
	if err != nil {
		_ = dev.Close()
		return r, err
	}
	forecast := memory.Process(s, dev.Device)
	undo := setup.LimitMemory(func() uint64 { return forecast }, c.Model)
	return measure.AgentsRun{Setup: s, Device: dev.Device, Model: m, Forecast: forecast, Close: func() {
		undo()
		_ = s.Set.Close()
		_ = dev.Close()
	}}, nil
}
