package docscmd

import (
	"fmt"
	"math"
	"math/cmplx"
	"os"
	"strings"
	"testing"

	"fspda/cli/setup"
	"fspda/cpu"
	"fspda/train"
)

// The picture of the stable region is current. With -update the test writes it.
func TestStabilityPictureIsCurrent(t *testing.T) {
	const file = "../../docs/images/stability.svg"
	picture := stabilityDiagram()
	if *update {
		if err := os.WriteFile(file, []byte(picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(file); err != nil || string(kept) != picture {
		t.Errorf("%s is not current: make generate", file)
	}
}

// The picture shows the region that Resolve accepts as stable.
func TestStabilityPictureIsTheRule(t *testing.T) {
	dev := &setup.Devices{Device: cpu.New()}
	for _, dual := range []float64{0.01, 0.2, 0.5, 0.9, 1.3, 1.7} {
		for _, gamma := range []float64{0.1, 0.4, 0.6, 0.95, 1.05, 1.2, 1.5, 1.8, 1.95} {
			c := train.Default()
			c.Gamma, c.Beta, c.Eta = gamma, 1, train.AutoFloat{V: dual}
			c.DataTrain, c.DataTest, c.Hidden, c.Batch = 400, 100, train.Widths{4}, 8
			_, _, err := setup.Prepare(c, dev)
			if stable := radius(gamma, dual, 2) < 1; stable != (err == nil) {
				t.Errorf("gamma %v, eta·beta %v: radius %v, but %v", gamma, dual, radius(gamma, dual, 2), err)
			}
		}
	}
}

// radius returns the spectral radius of FSPDA-SA's consensus mode at the Laplacian eigenvalue l,
// that is, of z² - (2-γl)z + (1-γl+ηβl). The mode is stable if the radius is below 1.
func radius(gamma, dual, l float64) float64 {
	b, c := 2-gamma*l, 1-gamma*l+dual*l
	root := cmplx.Sqrt(complex(b*b-4*c, 0))
	return math.Max(cmplx.Abs((complex(b, 0)+root)/2), cmplx.Abs((complex(b, 0)-root)/2))
}

// The plot area of the diagram, and the range of both axes.
const (
	left, top, side = 70.0, 52.0, 380.0
	most            = 2.0
)

func xOf(dual float64) float64  { return left + side*dual/most }
func yOf(gamma float64) float64 { return top + side*(1-gamma/most) }

// shades are the colours of spectral radii below a bound.
var shades = []struct {
	below  float64
	colour string
}{{0.5, "#0b4f7d"}, {0.7, "#2f7fb5"}, {0.85, "#74aed6"}, {0.95, "#b3d3ea"}, {1, "#e1eef7"}}

// stabilityDiagram draws, over ηβ and γ, where one active edge (l = 2) is stable and how fast its
// consensus error decays.
func stabilityDiagram() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 490" width="640" height="490" font-family="Liberation Sans,Arial,Helvetica,sans-serif" font-size="13" fill="#59636e" role="img">
<title>The stable region of one active edge: between γ = ηβ and γ = 1 + ηβ/2</title>
<rect width="640" height="490" fill="#ffffff"/>
`+`<text x="%g" y="26" font-size="16" font-weight="bold" fill="#1b1f23">Where an exchange is stable, and how fast it forgets</text>
`, left-50)
	drawRadii(&b)
	drawBorders(&b)
	drawLabels(&b)
	drawLegend(&b)
	return b.String()
}

// drawRadii colours each cell of the plot by its spectral radius.
func drawRadii(b *strings.Builder) {
	const cells = 76
	step := most / cells
	for i := range cells {
		for j := range cells {
			r := radius((float64(j)+0.5)*step, (float64(i)+0.5)*step, 2)
			for _, s := range shades {
				if r < s.below {
					fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="5.2" height="5.2" fill="%s"/>`+"\n",
						xOf(float64(i)*step), yOf(float64(j+1)*step), s.colour)
					break
				}
			}
		}
	}
}

// drawBorders draws the borders of the stable region, the curve of critical damping, and the axes.
func drawBorders(b *strings.Builder) {
	line := func(style string, at ...float64) {
		var d strings.Builder
		for k := 0; k < len(at); k += 2 {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(k, 1)], xOf(at[k]), yOf(at[k+1]))
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" %s/>`+"\n", d.String(), style)
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
}

// drawLabels draws the numbers and names of the axes and regions.
func drawLabels(b *strings.Builder) {
	for v := 0.0; v <= most; v += 0.5 {
		fmt.Fprintf(b,
			`<text x="%g" y="%g" text-anchor="middle">%g</text><text x="%g" y="%g" text-anchor="end">%g</text>`+"\n",
			xOf(v), yOf(0)+20, v, left-9, yOf(v)+4, v)
	}
	fmt.Fprintf(b,
		`<circle cx="%g" cy="%g" r="5" fill="#1b1f23"/><text x="%g" y="%g" fill="#1b1f23" stroke="#ffffff" stroke-width="4" paint-order="stroke">γ = 0.5 averages a pair</text>`+"\n", xOf(0), yOf(0.5), xOf(0)+10, yOf(0.5)-9)
	fmt.Fprintf(b, `<text x="%g" y="%g" text-anchor="middle">ηβ, dual gain times dual step</text>`+"\n", left+side/2,
		yOf(0)+44)
	fmt.Fprintf(b, `<text transform="translate(24 %g) rotate(-90)" text-anchor="middle">γ, gossip gain</text>`+"\n",
		top+side/2)
	fmt.Fprintf(b,
		`<text x="%g" y="%g" fill="#b3261e">γ ≥ 1 + ηβ/2: every exchange</text><text x="%g" y="%g" fill="#b3261e">widens the gap</text>`+"\n", xOf(0.06), yOf(1.72), xOf(0.06), yOf(1.64))
	fmt.Fprintf(b, `<text x="%g" y="%g" fill="#b3261e">γ ≤ ηβ: duals overshoot</text>`+"\n", xOf(1.08), yOf(0.42))
}

// drawLegend explains the colours.
func drawLegend(b *strings.Builder) {
	for k, s := range shades {
		from := 0.0
		if k > 0 {
			from = shades[k-1].below
		}
		fmt.Fprintf(b, `<rect x="480" y="%d" width="22" height="16" fill="%s"/><text x="510" y="%d">%g to %g</text>`+
			"\n", 90+24*k, s.colour, 103+24*k, from, s.below)
	}
	b.WriteString(`<text x="480" y="72" fill="#1b1f23">kept of a difference</text><text x="480" y="232">after each exchange</text>
` + `<path d="M480 262h22" stroke="#c65600" stroke-width="2" stroke-dasharray="7 4"/><text x="510" y="266">critically</text><text x="510" y="283">damped</text>
</svg>
`)
}
