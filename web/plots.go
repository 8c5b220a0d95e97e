package web

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fspda/internal/bounded"
	"fspda/internal/wholefile"
)

// WritePlots reads metrics.jsonl in dir, the folder of a run, and writes its curves into dir/plots:
// training loss, test accuracy, consensus error and squared gradient norm, each against the
// iteration and against the sent bits, as NAME-iteration.svg, NAME-iteration.png, NAME-bits.svg and
// NAME-bits.png. Null values, and non-positive ones on a logarithmic axis, are skipped; a chart
// without values says so. The accounting of bits_total is read from config.yaml, if it exists, and
// named on the axis.
//
// A damaged line of metrics.jsonl is an error that names it. Existing charts are then left
// unchanged.
func WritePlots(dir string) error {
	return WritePlotsTo(dir, filepath.Join(dir, "plots"), Layout{Formats: RunFormats})
}

// RunFormats are the formats that [WritePlots] writes. Tests of the command leave PNG out: its
// pictures take longer than a short training.
var RunFormats = []string{"svg", "png"}

// Formats lists the supported image formats. PDF files embed their fonts.
var Formats = []string{"svg", "png", "pdf"}

// WritePlotsTo is [WritePlots] with a destination folder and a layout. Each chart is as wide as the
// layout says.
func WritePlotsTo(dir, folder string, l Layout) error {
	m, err := readMetrics(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "config.yaml")
	text, err := bounded.YAMLFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("web: read: %w", err)
	}
	_, config, err := parseConfig(path, text)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fmt.Errorf("web: create folder for plots: %w", err)
	}
	axes := xAxesOf(accounting(config))
	for _, c := range chartsOf(m) {
		for k := range axes {
			d := c.layOut(m, &axes[k], &l)
			if err := writePlot(d, filepath.Join(folder, c.id+"-"+axes[k].id), l.formats()); err != nil {
				return err
			}
		}
	}
	return nil
}

// writePlot writes a drawing as base.FORMAT.
func writePlot(d *drawing, base string, formats []string) error {
	for _, format := range formats {
		content, err := d.as(format)
		if err != nil {
			return fmt.Errorf("web: paint %s.%s: %w", base, format, err)
		}
		if err := publish(base+"."+format, content); err != nil {
			return err
		}
	}
	return nil
}

// publish writes a file of results.
func publish(path string, content []byte) error {
	if err := wholefile.Publish(path, content); err != nil {
		return fmt.Errorf("web: %s cannot be written: %w: make room and give the folder to your user, or choose "+
			"another one", path, err)
	}
	return nil
}

// as returns the drawing in one of Formats.
func (d *drawing) as(format string) ([]byte, error) {
	switch format {
	case "svg":
		return d.svgFile(), nil
	case "png":
		return d.png()
	case "pdf":
		return d.pdf()
	}
	return nil, fmt.Errorf("unknown format %q, want svg, png or pdf", format)
}
