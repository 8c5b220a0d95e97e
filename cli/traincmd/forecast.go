package traincmd

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"fspda/cli/command"
	"fspda/internal/units"
	"fspda/train"
	"fspda/train/runfolder"
)

// dryRun prints how long a run would take and how much memory it needs.
func dryRun(ctx context.Context, r *run, m *allAgents, stdout io.Writer) error {
	from := 0
	if m.out != "" {
		from = runfolder.LatestIteration(m.out)
	}
	f, err := train.ForecastRun(ctx, r.setup, r.devices.Device, r.model, from, r.devices.Workers(r.model)...)
	if err != nil {
		return err
	}
	if m.json {
		return command.PrintJSON(stdout, f)
	}
	lines := slices.Concat(r.display.what(), r.setup.RecipeLines(), r.setup.Warnings, []string{forecastLine(f)},
		memoryLines(f))
	_, err = fmt.Fprintln(stdout, strings.Join(lines, "\n"))
	return err
}

func forecastLine(f train.Forecast) string {
	if f.Iterations == 0 {
		return "nothing left to train"
	}
	took := "about " + command.Duration(f.Total.Seconds())
	if f.Total == math.MaxInt64 {
		took = "more than 292 years"
	}
	clients := ""
	if f.Clients > 0 {
		clients = ", and " + command.Bytes(f.Clients) + " of the program of the model"
	}
	return fmt.Sprintf("%s iterations in %s (%s %s/s; an iteration %s, a row %s), %s sent, %s of memory%s",
		command.Thousands(uint64(f.Iterations)), took,
		command.Thousands(uint64(f.ImagesPerS)), f.Unit, command.Duration(f.Step.Seconds()),
		command.Duration(f.Row.Seconds()), units.SI(f.Bits, "bit"), command.Bytes(f.Memory), clients)
}

// memoryLines list the memory of each GPU that a run needs, by its use.
func memoryLines(f train.Forecast) []string {
	var lines []string
	for _, d := range f.Devices {
		lines = append(lines, fmt.Sprintf("%s: %d agents need %s of its memory; %s of %s are free", d.Name,
			d.Agents, command.Bytes(d.Need), command.Bytes(d.Free), command.Bytes(d.Total)))
		for _, p := range d.Parts {
			lines = append(lines, fmt.Sprintf("  %-38s %s", p.What, command.Bytes(p.Bytes)))
		}
		lines = append(lines, fmt.Sprintf("  already used: %s by kernels and libraries, %s by the driver and other "+
			"programs", command.Bytes(d.Opened), command.Bytes(d.Total-min(d.Total, d.Free+d.Opened))))
	}
	return lines
}
