package web

import "math"

// Layout says in which formats a picture is written and how it is laid out. The zero Layout is a
// picture for a screen with everything in it.
type Layout struct {
	Formats []string // Formats are some of [Formats]; empty: svg and png.
	Width   float64  // Width is the width of the picture in points, 1/72 inch; 0: 480 points a panel.
	Columns int      // Columns is the number of panels in a row; 0 chooses it.
	NoTitle bool     // NoTitle leaves out the title, and titles of panels that repeat an axis.
	NoNotes bool     // NoNotes leaves out the lines below the panels.
}

const (
	// paperScale is the size of a drawing unit, in points, in a picture of a given width: texts have
	// 8 points then.
	paperScale = 2 / 3.
	// paperPanel is the width of a panel, in points, from which on a row takes one more.
	paperPanel = 200.
	// NarrowestPanel is the least width of a panel in points.
	NarrowestPanel = 100.
	// pngDPI is the resolution of PNG files of screens: two pixels a drawing unit.
	pngDPI = 144
	// paperDPI is the resolution of PNG files of a given width.
	paperDPI = 300
)

func (l *Layout) formats() []string {
	if len(l.Formats) == 0 {
		return []string{"svg", "png"}
	}
	return l.Formats
}

// grid returns how many of n panels stand in a row, of which usually so many do, and the width of a
// panel in drawing units.
func (l *Layout) grid(n, usual int) (across int, width float64) {
	across = usual
	if l.Width > 0 {
		across = int(l.Width / paperPanel)
	}
	if l.Columns > 0 {
		across = l.Columns
	}
	across = max(1, min(across, n))
	if l.Width > 0 {
		return across, l.Width / paperScale / float64(across)
	}
	return across, chartW
}

// scale returns the size of a drawing unit in points.
func (l *Layout) scale() float64 {
	if l.Width > 0 {
		return paperScale
	}
	return 1
}

// chartHeight returns the height of a chart of a width. The plot in it keeps its proportions.
func chartHeight(width float64) float64 {
	margins := plotTop + bottomMargin
	return margins + (chartH-margins)*math.Max(0.5, width/chartW)
}
