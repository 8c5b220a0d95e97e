package traincmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"fspda/cli/command"
	"fspda/cli/setup"
	"fspda/model"
	"fspda/train"
)

// dryRun says what a run would take.
func dryRun(ctx context.Context, f trainFlags, s *train.Setup, m *model.Engine, dev *setup.Devices, stdout io.Writer) error {
	from := 0
	if f.out != "" {
		from = train.Standing(f.out)
	}
	ahead, err := s.Forecast(ctx, dev.Device, m, from, dev.Workers(m)...)
	if err != nil {
		return err
	}
	if f.json {
		return command.PrintJSON(stdout, ahead)
	}
	sh := &show{setup: s, model: m.Name()}
	_, err = fmt.Fprintln(stdout, strings.Join(append(append(append(sh.what(), s.Warnings...), forecastLine(ahead)),
		roomLines(ahead)...), "\n"))
	return err
}

// forecastLine is a forecast in words.
func forecastLine(f train.Forecast) string {
	if f.Iterations == 0 {
		return "nothing left to train"
	}
	return fmt.Sprintf("%s iterations in about %s (%s images/s; an iteration %s, a row %s), %s sent, %s of memory",
		command.Thousands(uint64(f.Iterations)), command.Duration(f.Total.Seconds()), command.Thousands(uint64(f.ImagesPerS)), command.Duration(
			f.Step.Seconds()), command.Duration(f.Row.Seconds()),
		command.Bits(uint64(f.Bits)), command.Bytes(f.Memory))
}

// roomLines tell of the memory of each GPU, and what takes it.
func roomLines(f train.Forecast) []string {
	var lines []string
	for _, d := range f.Devices {
		lines = append(lines, fmt.Sprintf("%s: %d agents take %s of its memory, of which %s of %s are free", d.Name,
			d.Agents, command.Bytes(d.Need), command.Bytes(d.Free), command.Bytes(d.Total)))
		for _, p := range d.Parts {
			lines = append(lines, fmt.Sprintf("  %-38s %s", p.What, command.Bytes(p.Bytes)))
		}
		lines = append(lines, fmt.Sprintf(
			"  taken before: %s by kernels and libraries, %s by the driver and other programs", command.Bytes(d.Opened), command.Bytes(
				d.Total-min(d.Total, d.Free+d.Opened))))
	}
	return lines
}
