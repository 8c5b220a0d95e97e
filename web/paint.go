package web

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// pngDPI is the resolution of PNG files: 2.5 pixels per drawing unit, as a unit is 1/72 inch.
const pngDPI = 180

var fonts = font.NewCache(liberation.Collection())

// face returns the font of a text style.
func face(s *style) font.Face {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if s.bold {
		f.Weight = 3 // bold in golang.org/x/image/font
	}
	return fonts.Lookup(f, font.Length(s.size))
}

// textWidth returns the width of a text in drawing units.
func textWidth(style, s string) float64 {
	f := face(styleOf(style))
	return f.Width(s).Points()
}

// png returns the drawing as a PNG file with a white background.
func (d *drawing) png() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(d.w), vg.Length(d.h)), vgimg.UseDPI(pngDPI),
		vgimg.UseBackgroundColor(color.White))
	for i := range d.marks {
		d.paint(c, &d.marks[i])
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed} // half the time, files a few percent larger
	if err := enc.Encode(&b, withPalette(c.Image())); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// withPalette returns an image in its 256 most frequent colours. Rarer shades, at the edges of lines
// and letters, become the nearest of them. The file is half as large and written sooner.
func withPalette(img image.Image) image.Image {
	full, ok := img.(*image.RGBA)
	if !ok || full.Stride != 4*full.Rect.Dx() {
		return img
	}
	pixel := func(i int) uint32 { return binary.BigEndian.Uint32(full.Pix[4*i:]) }
	small := image.NewPaletted(full.Rect, nil)
	counts := map[uint32]int{}
	for begin, i := 0, 1; i <= len(small.Pix); i++ {
		if i == len(small.Pix) || pixel(i) != pixel(begin) {
			counts[pixel(begin)] += i - begin
			begin = i
		}
	}
	index := map[uint32]uint8{}
	for i, p := range slices.SortedFunc(maps.Keys(counts), func(a, b uint32) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	}) {
		c := color.RGBA{uint8(p >> 24), uint8(p >> 16), uint8(p >> 8), uint8(p)}
		if i < 256 {
			small.Palette = append(small.Palette, c)
			index[p] = uint8(i)
		} else {
			index[p] = uint8(small.Palette.Index(c))
		}
	}
	for i := range small.Pix {
		if i > 0 && pixel(i) == pixel(i-1) {
			small.Pix[i] = small.Pix[i-1]
		} else {
			small.Pix[i] = index[pixel(i)]
		}
	}
	return small
}

// paint draws one mark on a canvas whose origin is at the bottom left.
func (d *drawing) paint(c vg.Canvas, m *mark) {
	s := styleOf(m.style)
	if m.kind == text || m.kind == upright {
		d.paintText(c, m, s)
		return
	}
	var p vg.Path
	if m.kind == disc {
		p.Move(vg.Point{X: vg.Length(m.at[0].x + m.r), Y: vg.Length(d.h - m.at[0].y)})
		p.Arc(vg.Point{X: vg.Length(m.at[0].x), Y: vg.Length(d.h - m.at[0].y)}, vg.Length(m.r), 0, 2*math.Pi)
		p.Close()
	}
	for i, q := range m.at {
		if at := (vg.Point{X: vg.Length(q.x), Y: vg.Length(d.h - q.y)}); m.kind == disc {
			break
		} else if i == 0 {
			p.Move(at)
		} else {
			p.Line(at)
		}
	}
	if m.kind == polygon {
		p.Close()
	}
	if s.fill != "" && m.kind != polyline {
		c.SetColor(faded(toneOf(s.fill).light, s.opacity, m.level))
		c.Fill(p)
	}
	if s.stroke != "" {
		dash := make([]vg.Length, len(s.dash))
		for i, v := range s.dash {
			dash[i] = vg.Length(v)
		}
		c.SetLineDash(dash, 0)
		c.SetLineWidth(vg.Length(s.width))
		c.SetColor(toneOf(s.stroke).light)
		c.Stroke(p)
	}
}

// faded returns a colour with the opacities of its style and of its mark; 0 means opaque.
func faded(c color.RGBA, opacity, level float64) color.Color {
	a := 255.0
	if opacity > 0 {
		a *= opacity
	}
	if level > 0 {
		a *= level
	}
	return color.NRGBA{c.R, c.G, c.B, uint8(math.Round(a))}
}

func (d *drawing) paintText(c vg.Canvas, m *mark, s *style) {
	f := face(s)
	c.SetColor(toneOf(s.fill).light)
	c.Push()
	c.Translate(vg.Point{X: vg.Length(m.at[0].x), Y: vg.Length(d.h - m.at[0].y)})
	if m.kind == upright {
		c.Rotate(math.Pi / 2)
	}
	t := clean(m.text)
	c.FillString(f, vg.Point{X: -f.Width(t) * font.Length(m.align) / 2}, t)
	c.Pop()
}
