package web

import (
	"image/color"
	"math"
	"strings"
	"testing"
)

// luminance returns the relative luminance of WCAG 2.
func luminance(c color.RGBA) float64 {
	lin := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(c.R) + 0.7152*lin(c.G) + 0.0722*lin(c.B)
}

func contrast(a, b color.RGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (math.Max(x, y) + 0.05) / (math.Min(x, y) + 0.05)
}

// WCAG 2 requires a contrast of 4.5 for texts and of 3 for graphics.
func TestContrast(t *testing.T) {
	for name, least := range map[string]float64{"ink": 7, "soft": 4.5, "good": 4.5, "bad": 4.5, "blue": 3, "orange": 3,
		"green": 3, "purple": 3, "wine": 3, "olive": 3, "slate": 3} {
		c := toneOf(name)
		for _, ground := range []string{"paper", "card"} {
			g := toneOf(ground)
			if l, d := contrast(c.light, g.light), contrast(c.dark, g.dark); l < least || d < least {
				t.Errorf("%s on %s: contrast %.2f light, %.2f dark, want %g", name, ground, l, d, least)
			}
		}
	}
}

func TestStyles(t *testing.T) {
	for _, s := range styles {
		for _, name := range []string{s.fill, s.stroke} {
			if name != "" {
				toneOf(name) // panics if there is none
			}
		}
		if !strings.Contains(stylesCSS(printColour), "."+s.name+"{") {
			t.Errorf("no rule for %s", s.name)
		}
	}
	if css := stylesCSS(pageColour); !strings.Contains(css, ".v-line1{fill:none;stroke:var(--blue);stroke-width:2;") ||
		strings.Contains(css, "#") {
		t.Error("stylesCSS is wrong:\n" + css)
	}
	if css := paletteCSS(); !strings.Contains(css, "--blue:#0072b2") ||
		!strings.Contains(css, "prefers-color-scheme:dark") {
		t.Error("paletteCSS is wrong:\n" + css)
	}
	for _, f := range []func(){func() { toneOf("mauve") }, func() { styleOf("v-mauve") }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic for an unknown name")
				}
			}()
			f()
		}()
	}
}
