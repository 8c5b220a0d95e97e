package web

import (
	"fmt"
	"os"
	"path/filepath"

	"fspda/internal/wholefile"
)

// WritePlots reads metrics.jsonl in dir, the folder of a run, and writes its curves into dir/plots:
// training loss, test accuracy, consensus error and squared gradient norm, each against the
// iteration and against the bits sent, as NAME-iteration.svg, NAME-iteration.png, NAME-bits.svg and
// NAME-bits.png. Values that are null, and those that are not positive on a logarithmic axis, are
// skipped; a picture without any value says so. How bits_total counts is taken from config.yaml, if
// there is one, and printed at the axis.
//
// A damaged line of metrics.jsonl is an error that names it; the pictures of an earlier call then
// stay as they are.
func WritePlots(dir string) error {
	return WritePlotsTo(dir, filepath.Join(dir, "plots"), "svg", "png")
}

// Formats are those in which pictures can be written. PDF has its fonts inside.
var Formats = []string{"svg", "png", "pdf"}

// WritePlotsTo is [WritePlots] into another folder, in the formats given.
func WritePlotsTo(dir, folder string, formats ...string) error {
	m, err := readMetrics(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	_, config, err := readConfig(filepath.Join(dir, "config.yaml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("web: create folder for plots: %w", err)
	}
	axes := xAxesOf(accounting(config))
	for i := range charts {
		for k := range axes {
			d := charts[i].draw(m, &axes[k])
			if err := writePlot(d, filepath.Join(folder, charts[i].id+"-"+axes[k].id), formats...); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePlot writes a drawing as base.FORMAT.
func writePlot(d *drawing, base string, formats ...string) error {
	for _, format := range formats {
		content, err := d.as(format)
		if err != nil {
			return fmt.Errorf("web: paint %s.%s: %w", base, format, err)
		}
		if err := wholefile.Publish(base+"."+format, content); err != nil {
			return fmt.Errorf("web: write plot: %w", err)
		}
	}
	return nil
}

// as returns a drawing in one of Formats.
func (d *drawing) as(format string) ([]byte, error) {
	switch format {
	case "svg":
		return d.svgFile(), nil
	case "png":
		return d.png()
	case "pdf":
		return d.pdf()
	}
	return nil, fmt.Errorf("no format %q, expected svg, png or pdf", format)
}
