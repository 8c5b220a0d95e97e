package web

import (
	"strings"
	"testing"
)

// everything returns a drawing with a mark of each kind, some with texts that need escaping.
func everything() *drawing {
	d := &drawing{w: 100, h: 50, alt: "<all> & \x00\xff"}
	d.line("v-line1", point{0, 0}, point{0.01, 0.01}, point{10, 20})
	d.add(mark{kind: polygon, style: "v-cell", at: rect(20, 20, 10, 10), level: 0.25, tip: "</path><script>"})
	d.add(mark{kind: disc, style: "v-node", at: []point{{50, 25}}, r: 10})
	d.text("v-title", 60, 20, end, `a<b & "c"`)
	d.add(mark{kind: upright, style: "v-label", at: []point{{90, 25}}, align: middle, text: "up"})
	return d
}

func TestSVG(t *testing.T) {
	d := everything()
	checkSVG(t, "file", d.svgFile())
	checkSVG(t, "inline", []byte(d.svgInline()))
	got := d.svgInline()
	for _, want := range []string{
		`viewBox="0 0 100 50"`, "aria-label=\"&lt;all&gt; &amp; \ufffd\ufffd\"",
		`<path class="v-line1" d="M0 0L10 20"/>`,
		`<path class="v-cell" d="M20 20L30 20L30 30L20 30Z" fill-opacity="0.25"><title>&lt;/path&gt;&lt;script&gt;</title></path>`,
		`<circle class="v-node" cx="50" cy="25" r="10"/>`,
		`<text class="v-title" x="60" y="20" text-anchor="end">a&lt;b &amp; &#34;c&#34;</text>`,
		`transform="rotate(-90 90 25)">up</text>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

func TestCoord(t *testing.T) {
	for v, want := range map[float64]string{0: "0", -0.01: "0", 1.25: "1.2", 3: "3", -2.5: "-2.5", 99.96: "100"} {
		if got := coord(v); got != want {
			t.Errorf("coord(%g) = %s, want %s", v, got, want)
		}
	}
}
