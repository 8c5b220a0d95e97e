package experimentcmd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"fspda/cli/command"
	"fspda/web"
)

// layoutFlags say how pictures are laid out.
type layoutFlags struct {
	formats []string
	width   length
	columns int
	noTitle bool
	noNotes bool
}

// layoutNames are the names of the flags of layoutFlags.
const layoutNames = " format width columns no-title no-notes"

func (l *layoutFlags) declare(fs *pflag.FlagSet) {
	fs.StringSliceVar(&l.formats, "format", []string{"svg", "png"},
		"formats of the pictures: svg, png, pdf, or several of them")
	fs.Var(&l.width, "width", "width of the pictures, as in 6.9in, 17.5cm or 497pt, with texts of 8 points; "+
		"the default is 480 points a panel, for screens")
	fs.IntVar(&l.columns, "columns", 0, "panels in a row; 0 chooses it")
	fs.BoolVar(&l.noTitle, "no-title", false, "leave out the title, and titles of panels that say what their axes say")
	fs.BoolVar(&l.noNotes, "no-notes", false, "leave out the notes below the panels; caption.md has them")
}

// check refuses layouts that cannot be drawn.
func (l *layoutFlags) check() error {
	if len(l.formats) == 0 {
		return command.UsageErrorf("--format is empty, expected svg, png, pdf, or several of them")
	}
	for _, name := range l.formats {
		if !slices.Contains(web.Formats, name) {
			return command.UsageErrorf("--format %q: expected svg, png or pdf%s", name,
				command.DidYouMean(name, web.Formats, ""))
		}
	}
	if l.columns < 0 {
		return command.UsageErrorf("--columns is %d, expected at least 1, or 0 to choose", l.columns)
	}
	if columns := float64(max(1, l.columns)); l.width > 0 && float64(l.width)/columns < web.NarrowestPanel {
		return command.UsageErrorf("--width %s with %d columns: panels would be %.3g points wide, expected at "+
			"least %g: "+
			"use fewer columns or more width", l.width, max(1, l.columns), float64(l.width)/columns, web.NarrowestPanel)
	}
	return nil
}

func (l *layoutFlags) layout() web.Layout {
	return web.Layout{Formats: l.formats, Width: float64(l.width), Columns: l.columns, NoTitle: l.noTitle,
		NoNotes: l.noNotes}
}

// length is a length in points, 1/72 inch.
type length float64

// units are the points in units of length.
var lengthUnits = []struct {
	name   string
	points float64
}{{"in", 72}, {"cm", 72 / 2.54}, {"mm", 7.2 / 2.54}, {"pt", 1}}

func (l length) String() string {
	if l == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(l)/72, 'g', 4, 64) + "in"
}

func (l *length) Set(text string) error {
	for _, u := range lengthUnits {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.name)
		if !ok {
			continue
		}
		if v, err := strconv.ParseFloat(strings.TrimSpace(number), 64); err == nil && v*u.points >= 1 &&
			v*u.points <= 14400 {
			*l = length(v * u.points)
			return nil
		}
	}
	return fmt.Errorf("expected a length with its unit, in, cm, mm or pt, up to 200in, as in 6.9in")
}

// Type is the name of the type in help texts.
func (*length) Type() string { return "length" }
