package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"fspda/model"
	"fspda/train"
)

// dryRun says what a run would take.
func dryRun(ctx context.Context, f trainFlags, s *train.Setup, m *model.Engine, dev *engine, stdout io.Writer) error {
	from := 0
	if f.out != "" {
		from = train.Standing(f.out)
	}
	ahead, err := s.Forecast(ctx, dev.Device, m, from, dev.places(m)...)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(stdout, ahead)
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
		thousands(uint64(f.Iterations)), brief(f.Total.Seconds()), thousands(uint64(f.ImagesPerS)), brief(
			f.Step.Seconds()), brief(f.Row.Seconds()),
		bits(uint64(f.Bits)), size(f.Memory))
}

// roomLines tell of the memory of each GPU, and what takes it.
func roomLines(f train.Forecast) []string {
	var lines []string
	for _, d := range f.Devices {
		lines = append(lines, fmt.Sprintf("%s: %d agents take %s of its memory, of which %s of %s are free", d.Name,
			d.Agents, size(d.Need), size(d.Free), size(d.Total)))
		for _, p := range d.Parts {
			lines = append(lines, fmt.Sprintf("  %-38s %s", p.What, size(p.Bytes)))
		}
		lines = append(lines, fmt.Sprintf(
			"  taken before: %s by kernels and libraries, %s by the driver and other programs", size(d.Opened), size(
				d.Total-min(d.Total, d.Free+d.Opened))))
	}
	return lines
}

// brief writes a time with three digits and its unit.
func brief(s float64) string {
	switch {
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", 1e6*s)
	case s < 1:
		return fmt.Sprintf("%.3g ms", 1e3*s)
	}
	return seconds(s)
}

// size writes a number of bytes with a decimal unit.
func size(n uint64) string {
	v, unit := float64(n), 0
	for v >= 1000 && unit < 4 {
		v /= 1000
		unit++
	}
	return fmt.Sprintf("%.3g %s", v, [...]string{"B", "kB", "MB", "GB", "TB"}[unit])
}
