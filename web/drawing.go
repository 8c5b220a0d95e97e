package web

import (
	"bytes"
	"fmt"
	"html"
	"strconv"
	"strings"
)

// drawing is a picture of lines, areas and texts in a box of w by h units, from the top left corner
// down, painted in order.
type drawing struct {
	w, h  float64
	alt   string // what the picture shows, for readers who cannot see it
	marks []mark
}

// mark is one element of a drawing.
type mark struct {
	kind  kind
	style string
	at    []point // corners; the centre of a disc; where a text starts, ends or has its middle, on its base line
	r     float64 // of a disc
	text  string
	align align
	tip   string  // shown when a pointer rests on the mark
	level float64 // strength of the fill in (0,1]; 0 is full
}

type point struct{ x, y float64 }

type kind uint8

const (
	polyline kind = iota
	polygon
	disc
	text
	upright // text that runs from bottom to top
)

type align uint8

const (
	start align = iota
	middle
	end
)

func (d *drawing) add(m mark) { d.marks = append(d.marks, m) }

func (d *drawing) line(style string, at ...point) {
	d.add(mark{kind: polyline, style: style, at: at})
}

func (d *drawing) text(style string, x, y float64, a align, s string) {
	d.add(mark{kind: text, style: style, at: []point{{x, y}}, align: a, text: s})
}

// rect returns the corners of a rectangle.
func rect(x, y, w, h float64) []point { return []point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}} }

// svgFile returns a drawing as a file of its own, on white.
func (d *drawing) svgFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt" viewBox="0 0 %g %g" role="img" %s>`+"\n",
		d.w, d.h, d.w, d.h, svgFont)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n%s</style>\n", html.EscapeString(clean(d.alt)), stylesCSS(printColour))
	fmt.Fprintf(&b, "<rect width=\"%g\" height=\"%g\" fill=\"%s\"/>\n", d.w, d.h, printColour("paper"))
	d.writeMarks(&b)
	return b.Bytes()
}

// svgInline returns a drawing for a page that declares the styles.
func (d *drawing) svgInline() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s" %s>`+"\n", d.w, d.h,
		html.EscapeString(clean(d.alt)), svgFont)
	d.writeMarks(&b)
	return b.String()
}

// svgFont names fonts of the same widths as the one that texts are measured with.
const svgFont = `font-family="Liberation Sans,Arial,Helvetica,sans-serif"`

// writeMarks writes the marks and closes the picture.
func (d *drawing) writeMarks(b *bytes.Buffer) {
	for _, m := range d.marks {
		m.svg(b)
	}
	b.WriteString("</svg>\n")
}

// svg writes the mark as an element.
func (m *mark) svg(b *bytes.Buffer) {
	name := "path"
	switch m.kind {
	case disc:
		name = "circle"
		fmt.Fprintf(b, `<circle class="%s" cx="%s" cy="%s" r="%s"`, m.style, coord(m.at[0].x), coord(m.at[0].y),
			coord(m.r))
	case text, upright:
		name = "text"
		fmt.Fprintf(b, `<text class="%s" x="%s" y="%s"`, m.style, coord(m.at[0].x), coord(m.at[0].y))
		if m.align != start {
			fmt.Fprintf(b, ` text-anchor="%s"`, [...]string{"start", "middle", "end"}[m.align])
		}
		if m.kind == upright {
			fmt.Fprintf(b, ` transform="rotate(-90 %s %s)"`, coord(m.at[0].x), coord(m.at[0].y))
		}
	default:
		fmt.Fprintf(b, `<path class="%s" d="%s"`, m.style, pathData(m.at, m.kind == polygon))
	}
	if m.level > 0 {
		fmt.Fprintf(b, ` fill-opacity="%.3g"`, m.level)
	}
	if m.tip == "" && m.text == "" {
		b.WriteString("/>\n")
		return
	}
	b.WriteByte('>')
	if m.tip != "" {
		fmt.Fprintf(b, "<title>%s</title>", html.EscapeString(clean(m.tip)))
	}
	fmt.Fprintf(b, "%s</%s>\n", html.EscapeString(clean(m.text)), name)
}

// pathData writes corners as path commands. Corners that fall on the one before, as printed, are
// left out: a curve has no more points than its picture.
func pathData(at []point, closed bool) string {
	var b strings.Builder
	last := ""
	for i, p := range at {
		s := coord(p.x) + " " + coord(p.y)
		if s == last {
			continue
		}
		switch i {
		case 0:
			b.WriteByte('M')
		default:
			b.WriteByte('L')
		}
		b.WriteString(s)
		last = s
	}
	if closed {
		b.WriteByte('Z')
	}
	return b.String()
}

// coord writes a coordinate to a tenth of a unit, which no eye sees.
func coord(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// clean replaces what XML does not allow in a text: control characters and invalid UTF-8.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
