package docscmd

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"
)

// radius is the spectral radius of FSPDA-SA's consensus mode at the Laplacian eigenvalue l: of z² -
// (2-γl)z + (1-γl+ηβl). Below 1 it is stable.
func radius(gamma, dual, l float64) float64 {
	b, c := 2-gamma*l, 1-gamma*l+dual*l
	root := cmplx.Sqrt(complex(b*b-4*c, 0))
	return math.Max(cmplx.Abs((complex(b, 0)+root)/2), cmplx.Abs((complex(b, 0)-root)/2))
}

// stabilityPicture draws where one active edge (l = 2) is stable, over ηβ and γ, and how fast it
// forgets a difference there.
func stabilityPicture() string {
	const (
		left, top, size = 70.0, 52.0, 380.0
		most            = 2.0 // of both axes
		cells           = 76
	)
	x := func(dual float64) float64 { return left + size*dual/most }
	y := func(gamma float64) float64 { return top + size*(1-gamma/most) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 490" width="640" height="490" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="13" fill="#59636e" role="img">
<title>The stable region of one active edge: between γ = ηβ and γ = 1 + ηβ/2</title>
<rect width="640" height="490" fill="#ffffff"/>
<text x="%g" y="26" font-size="16" font-weight="bold" fill="#1b1f23">Where an exchange is stable, and how fast it forgets</text>
`, left-50)
	shades := []struct {
		below  float64
		colour string
	}{{0.5, "#0b4f7d"}, {0.7, "#2f7fb5"}, {0.85, "#74aed6"}, {0.95, "#b3d3ea"}, {1, "#e1eef7"}}
	step := most / cells
	for i := range cells {
		for j := range cells {
			r := radius((float64(j)+0.5)*step, (float64(i)+0.5)*step, 2)
			for _, s := range shades {
				if r < s.below {
					fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="5.2" height="5.2" fill="%s"/>`+"\n",
						x(float64(i)*step), y(float64(j+1)*step), s.colour)
					break
				}
			}
		}
	}
	line := func(style string, at ...float64) {
		var d strings.Builder
		for k := 0; k < len(at); k += 2 {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(k, 1)], x(at[k]), y(at[k+1]))
		}
		fmt.Fprintf(&b, `<path d="%s" fill="none" %s/>`+"\n", d.String(), style)
	}
	line(`stroke="#b3261e" stroke-width="2"`, 0, 0, 2, 2)
	line(`stroke="#b3261e" stroke-width="2"`, 0, 1, 2, 2)
	var critical []float64
	for g := 0.0; g <= 2; g += 0.05 {
		if d := g * g / 2; d <= g {
			critical = append(critical, d, g)
		}
	}
	line(`stroke="#c65600" stroke-width="2" stroke-dasharray="7 4"`, critical...)
	line(`stroke="#1b1f23" stroke-width="1"`, 0, 2, 0, 0, 2, 0)
	for v := 0.0; v <= most; v += 0.5 {
		fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">%g</text><text x="%g" y="%g" text-anchor="end">%g</text>`+"\n", x(v), y(0)+20, v, left-9, y(v)+4, v)
	}
	fmt.Fprintf(&b, `<circle cx="%g" cy="%g" r="5" fill="#1b1f23"/><text x="%g" y="%g" fill="#1b1f23" stroke="#ffffff" stroke-width="4" paint-order="stroke">γ = 0.5 averages a pair</text>`+"\n", x(0), y(0.5), x(0)+10, y(0.5)-9)
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">ηβ, dual gain times dual step</text>`+"\n", left+size/2,
		y(0)+44)
	fmt.Fprintf(&b, `<text transform="translate(24 %g) rotate(-90)" text-anchor="middle">γ, gossip gain</text>`+"\n",
		top+size/2)
	fmt.Fprintf(&b, `<text x="%g" y="%g" fill="#b3261e">γ ≥ 1 + ηβ/2: every exchange</text><text x="%g" y="%g" fill="#b3261e">widens the gap</text>`+"\n", x(0.06), y(1.72), x(0.06), y(1.64))
	fmt.Fprintf(&b, `<text x="%g" y="%g" fill="#b3261e">γ ≤ ηβ: duals overshoot</text>`+"\n", x(1.08), y(0.42))
	for k, s := range shades {
		from := 0.0
		if k > 0 {
			from = shades[k-1].below
		}
		fmt.Fprintf(&b, `<rect x="480" y="%d" width="22" height="16" fill="%s"/><text x="510" y="%d">%g to %g</text>`+"\n", 90+24*k, s.colour, 103+24*k, from, s.below)
	}
	b.WriteString(`<text x="480" y="72" fill="#1b1f23">kept of a difference</text><text x="480" y="232">after each exchange</text>
<path d="M480 262h22" stroke="#c65600" stroke-width="2" stroke-dasharray="7 4"/><text x="510" y="266">critically</text><text x="510" y="283">damped</text>
</svg>
`)
	return b.String()
}
