package web

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"strconv"
	"strings"
)

// drawing is a list of lines, areas and texts in a box of w by h units. The origin is the top left
// corner. Marks are painted in order.
type drawing struct {
	w, h  float64
	scale float64 // points in a unit; 0: 1
	alt   string  // text alternative for screen readers
	marks []mark
}

// unit returns the size of a unit in points.
func (d *drawing) unit() float64 { return cmp.Or(d.scale, 1) }

// mark is one element of a drawing.
type mark struct {
	kind  kind
	style string
	at    []point // corners; the centre of a disc; the anchor of a text on its baseline
	r     float64 // radius of a disc
	text  string
	align align
	tip   string  // tooltip
	level float64 // opacity of the fill in (0,1]; 0 means opaque
}

type point struct{ x, y float64 }

type kind uint8

const (
	polyline kind = iota
	polygon
	disc
	text
	upright // text rotated to run from bottom to top
)

type align uint8

const (
	start align = iota
	middle
	end
)

func (d *drawing) add(m mark) { d.marks = append(d.marks, m) }

func (d *drawing) line(style string, at ...point) { d.add(mark{kind: polyline, style: style, at: at}) }

func (d *drawing) text(style string, x, y float64, a align, s string) {
	d.add(mark{kind: text, style: style, at: []point{{x, y}}, align: a, text: s})
}

// rect returns the corners of a rectangle.
func rect(x, y, w, h float64) []point { return []point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}} }

// svgFile returns a drawing as an SVG file on a white background.
func (d *drawing) svgFile() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt" viewBox="0 0 %g %g" role="img" %s>`+"\n",
		d.w*d.unit(), d.h*d.unit(), d.w, d.h, svgFont)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>\n%s</style>\n", html.EscapeString(clean(d.alt)), stylesCSS(printColour))
	fmt.Fprintf(&b, "<rect width=\"%g\" height=\"%g\" fill=\"%s\"/>\n", d.w, d.h, printColour("paper"))
	d.writeMarks(&b)
	return b.Bytes()
}

// svgInline returns a drawing as an SVG element for an HTML page that declares the styles.
func (d *drawing) svgInline() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s" %s>`+"\n", d.w, d.h,
		html.EscapeString(clean(d.alt)), svgFont)
	d.writeMarks(&b)
	return b.String()
}

// svgFont lists fonts that have the same widths as the font used for measuring texts.
const svgFont = `font-family="Liberation Sans,Arial,Helvetica,sans-serif"`

// writeMarks writes the marks and the closing tag.
func (d *drawing) writeMarks(b *bytes.Buffer) {
	for _, m := range d.marks {
		m.svg(b)
	}
	b.WriteString("</svg>\n")
}

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

// pathData returns corners as SVG path commands. Corners that round to the previous one are
// omitted.
func pathData(at []point, closed bool) string {
	var b strings.Builder
	last := ""
	for i, p := range at {
		s := coord(p.x) + " " + coord(p.y)
		if s == last {
			continue
		}
		b.WriteString("ML"[min(i, 1):][:1] + s)
		last = s
	}
	if closed {
		b.WriteByte('Z')
	}
	return b.String()
}

// coord formats a coordinate with one decimal place at most.
func coord(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

// clean replaces characters that XML does not allow: control characters and invalid UTF-8.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' && r != '\t' || r == 0x7f || r == 0xfffe || r == 0xffff {
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
