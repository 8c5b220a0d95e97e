package web

import (
	"fmt"
	"image/color"
	"slices"
	"strings"
)

// tone is a named colour with a variant for light and one for dark themes.
type tone struct {
	name        string
	light, dark color.RGBA
}

func rgb(v uint32) color.RGBA { return color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255} }

// tones is the palette. The data colours are by Okabe and Ito ("Color universal design",
// 2008), which colour-blind readers can tell apart, with lightness adjusted for contrast. Curves
// also differ in their dashes.
var tones = []tone{
	{"paper", rgb(0xffffff), rgb(0x14171a)},
	{"card", rgb(0xf6f7f8), rgb(0x1d2125)},
	{"ink", rgb(0x1b1f23), rgb(0xe6e8ea)},
	{"soft", rgb(0x59636e), rgb(0x9ea7b0)},
	{"line", rgb(0xd5d9dd), rgb(0x3a4148)},
	{"faint", rgb(0xebedef), rgb(0x262b30)},
	{"blue", rgb(0x0072b2), rgb(0x56b4e9)},
	{"orange", rgb(0xc65600), rgb(0xf0a04b)},
	{"green", rgb(0x007d5c), rgb(0x3ec9a0)},
	{"purple", rgb(0x7b3294), rgb(0xc994e0)},
	{"wine", rgb(0xb0103f), rgb(0xf58aa9)},
	{"olive", rgb(0x6f6a00), rgb(0xc9c04a)},
	{"slate", rgb(0x4d5b66), rgb(0xa7b3bd)},
	{"good", rgb(0x00684c), rgb(0x3ec9a0)},
	{"bad", rgb(0xb3261e), rgb(0xff8a80)},
}

// toneOf returns the tone of a name.
func toneOf(name string) tone {
	return tones[slices.IndexFunc(tones, func(t tone) bool { return t.name == name })]
}

// hex formats a colour for CSS and SVG.
func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// paletteCSS declares the tones as CSS variables: dark ones if the reader prefers dark on a screen,
// else light ones.
func paletteCSS() string {
	light, dark := declarations()
	return ":root{color-scheme:light dark;" + light + "}\n@media screen and (prefers-color-scheme:dark){:root{" + dark +
		"}}\n"
}

// style is the appearance of a mark. Widths, sizes and dashes are in drawing units.
type style struct {
	name         string
	fill, stroke string // tones; empty for none
	width        float64
	dash         []float64
	size         float64 // size of text
	bold         bool
	opacity      float64 // opacity of the fill; 0 is opaque
}

// styles lists all styles. Their names are also CSS classes. The band, the single runs and the
// points of curve v-c1 have the styles v-b1, v-r1 and v-o1, and so on.
var styles = withSeeds([]style{
	{name: "v-grid", stroke: "line", width: 0.8},
	{name: "v-minor", stroke: "faint", width: 0.8},
	{name: "v-axis", stroke: "soft", width: 1},
	{name: "v-title", fill: "ink", size: 14, bold: true},
	{name: "v-label", fill: "soft", size: 12},
	{name: "v-tick", fill: "soft", size: 11.5},
	{name: "v-key", fill: "ink", size: 12},
	{name: "v-note", fill: "soft", size: 13},
	{name: "v-line1", stroke: "blue", width: 2},
	{name: "v-line2", stroke: "orange", width: 2, dash: []float64{7, 3}},
	{name: "v-line3", stroke: "green", width: 2, dash: []float64{2, 2.5}},
	{name: "v-c1", stroke: "blue", width: 2.4},
	{name: "v-c2", stroke: "orange", width: 2.4},
	{name: "v-c3", stroke: "green", width: 1.8, dash: []float64{8, 3}},
	{name: "v-c4", stroke: "purple", width: 1.8, dash: []float64{8, 3}},
	{name: "v-c5", stroke: "slate", width: 1.8, dash: []float64{8, 3}},
	{name: "v-c6", stroke: "wine", width: 1.8, dash: []float64{2, 2.5}},
	{name: "v-c7", stroke: "olive", width: 1.8, dash: []float64{2, 2.5}},
	{name: "v-c8", stroke: "ink", width: 1.8, dash: []float64{2, 2.5}},
	{name: "v-c9", stroke: "blue", width: 1.8, dash: []float64{4, 4}},
	{name: "v-c10", stroke: "orange", width: 1.8, dash: []float64{4, 4}},
	{name: "v-c11", stroke: "green", width: 1.8, dash: []float64{2, 2.5}},
	{name: "v-c12", stroke: "purple", width: 1.8, dash: []float64{4, 4}},
	{name: "v-c13", stroke: "wine", width: 1.8, dash: []float64{8, 3}},
	{name: "v-c14", stroke: "olive", width: 1.8, dash: []float64{8, 3}},
	{name: "v-c15", stroke: "slate", width: 1.8, dash: []float64{2, 2.5}},
	{name: "v-c16", stroke: "ink", width: 1.8, dash: []float64{4, 4}},
	{name: "v-dot1", fill: "blue"},
	{name: "v-dot2", fill: "orange"},
	{name: "v-dot3", fill: "green"},
	{name: "v-band1", fill: "blue", opacity: 0.18},
	{name: "v-cell", fill: "blue"},
	{name: "v-frame", stroke: "line", width: 1},
	{name: "v-count", fill: "ink", size: 10},
	{name: "v-invert", fill: "paper", size: 10},
	{name: "v-edge", stroke: "soft", width: 1.2},
	{name: "v-thin", stroke: "line", width: 0.6},
	{name: "v-node", fill: "paper", stroke: "blue", width: 2},
	{name: "v-name", fill: "ink", size: 12},
})

// withSeeds adds the styles of bands, single runs and points that are read to the styles of curves.
func withSeeds(list []style) []style {
	for _, s := range list {
		if number, ok := strings.CutPrefix(s.name, "v-c"); ok && strings.Trim(number, "0123456789") == "" {
			list = append(list, style{name: "v-b" + number, fill: s.stroke, opacity: 0.16},
				style{name: "v-r" + number, stroke: s.stroke, width: 0.7},
				style{name: "v-o" + number, fill: s.stroke})
		}
	}
	return list
}

// curveStyles is the number of curve styles of a comparison, v-c1 and so on.
const curveStyles = 16

// styleOf returns the style of a name.
func styleOf(name string) *style {
	return &styles[slices.IndexFunc(styles, func(s style) bool { return s.name == name })]
}

// stylesCSS returns the styles as CSS rules; colour maps a tone to a CSS colour.
func stylesCSS(colour func(tone string) string) string {
	var b strings.Builder
	for _, s := range styles {
		fmt.Fprintf(&b, ".%s{", s.name)
		fill := "none"
		if s.fill != "" {
			fill = colour(s.fill)
		}
		fmt.Fprintf(&b, "fill:%s;", fill)
		if s.opacity > 0 {
			fmt.Fprintf(&b, "fill-opacity:%g;", s.opacity)
		}
		if s.stroke != "" {
			fmt.Fprintf(&b, "stroke:%s;stroke-width:%g;stroke-linejoin:round;", colour(s.stroke), s.width)
		}
		if len(s.dash) > 0 {
			fmt.Fprintf(&b, "stroke-dasharray:%g %g;", s.dash[0], s.dash[1])
		}
		if s.size > 0 {
			fmt.Fprintf(&b, "font-size:%gpx;", s.size)
		}
		if s.bold {
			b.WriteString("font-weight:bold;")
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// pageColour returns a reference to a variable of [paletteCSS].
func pageColour(name string) string { return "var(--" + toneOf(name).name + ")" }

// printColour returns the light variant of a tone.
func printColour(name string) string { return hex(toneOf(name).light) }

// themesCSS declares the tones as CSS variables of the live page: the theme of the system, unless
// the attribute data-theme overrides it.
func themesCSS() string {
	light, dark := declarations()
	return ":root{color-scheme:light;" + light + "}\n" +
		"@media (prefers-color-scheme:dark){:root:not([data-theme=light]){color-scheme:dark;" + dark + "}}\n" +
		":root[data-theme=dark]{color-scheme:dark;" + dark + "}\n"
}

func declarations() (light, dark string) {
	for _, t := range tones {
		light += fmt.Sprintf("--%s:%s;", t.name, hex(t.light))
		dark += fmt.Sprintf("--%s:%s;", t.name, hex(t.dark))
	}
	return light, dark
}
