package web

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
	"slices"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
)

// fonts are the two fonts of drawings.
var fonts = sync.OnceValue(func() *font.Cache {
	var both font.Collection
	for weight, ttf := range map[xfont.Weight][]byte{
		xfont.WeightNormal: liberationsansregular.TTF, xfont.WeightBold: liberationsansbold.TTF} {
		face, err := opentype.Parse(ttf)
		if err != nil {
			panic(err) // it is in the program
		}
		both = append(both, font.Face{Font: sans(weight), Face: face})
	}
	return font.NewCache(both)
})

func sans(w xfont.Weight) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Weight: w}
}

func face(s *style) font.Face {
	w := xfont.WeightNormal
	if s.bold {
		w = xfont.WeightBold
	}
	return fonts().Lookup(sans(w), font.Length(s.size))
}

// textWidth returns the width of a text in drawing units.
func textWidth(style, s string) float64 {
	f := face(styleOf(style))
	return f.Width(s).Points()
}

// dpi returns the pixels in 72 units of the PNG file.
func (d *drawing) dpi() int {
	if d.scale == 0 || d.scale == 1 {
		return pngDPI
	}
	return int(math.Round(paperDPI * d.scale))
}

// png returns the drawing as a PNG file with a white background.
func (d *drawing) png() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(vg.Length(d.w), vg.Length(d.h)), vgimg.UseDPI(d.dpi()),
		vgimg.UseBackgroundColor(color.White))
	for i := range d.marks {
		d.paint(c, &d.marks[i])
	}
	var b bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed} // half the time, files a few percent larger
	if err := enc.Encode(&b, withPalette(c.Image(), d.tones())); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// tones returns the opaque colours of the marks.
func (d *drawing) tones() map[uint32]bool {
	all := map[uint32]bool{}
	for i := range d.marks {
		s := styleOf(d.marks[i].style)
		for _, name := range []string{s.fill, s.stroke} {
			if name != "" {
				c := toneOf(name).light
				all[uint32(c.R)<<24|uint32(c.G)<<16|uint32(c.B)<<8|uint32(c.A)] = true
			}
		}
	}
	return all
}

// withPalette returns an image in 256 of its colours: those to keep, and the most frequent others.
// Rarer shades, at the edges of lines and letters, become the nearest of them. The file is half as
// large and written sooner.
func withPalette(img image.Image, keep map[uint32]bool) image.Image {
	full, ok := img.(*image.RGBA)
	if !ok || full.Stride != 4*full.Rect.Dx() {
		return img
	}
	small := image.NewPaletted(full.Rect, nil)
	ids := map[uint32]uint32{}
	var colours []shade
	runs := make([]pixelRun, 0, len(full.Pix)/64) // runs of equal pixels
	for pix := full.Pix; len(pix) > 0; {
		pixels, p := equal(pix), binary.BigEndian.Uint32(pix)
		id, known := ids[p]
		if !known {
			id = uint32(len(colours))
			ids[p], colours = id, append(colours, shade{pixel: p})
		}
		colours[id].count += pixels
		runs, pix = append(runs, pixelRun{id, uint32(pixels)}), pix[4*pixels:]
	}
	index := make([]uint8, len(colours))
	var frequent []color.RGBA
	for i, c := range slices.SortedFunc(slices.Values(colours), func(a, b shade) int {
		if keep[a.pixel] != keep[b.pixel] {
			if keep[a.pixel] {
				return -1
			}
			return 1
		}
		return cmp.Or(b.count-a.count, cmp.Compare(a.pixel, b.pixel))
	}) {
		p := c.pixel
		if rgba := (color.RGBA{uint8(p >> 24), uint8(p >> 16), uint8(p >> 8), uint8(p)}); i < 256 {
			frequent, small.Palette = append(frequent, rgba), append(small.Palette, rgba)
			index[ids[p]] = uint8(i)
		} else {
			index[ids[p]] = uint8(nearest(frequent, rgba))
		}
	}
	rest := small.Pix
	for _, r := range runs {
		fill := rest[:r.pixels]
		for i := range fill {
			fill[i] = index[r.id]
		}
		rest = rest[r.pixels:]
	}
	return small
}

// shade is a colour, as red, green, blue and opacity from the highest byte down, and how many
// pixels have it. pixelRun is a number of successive pixels of one colour.
type (
	shade struct {
		pixel uint32
		count int
	}
	pixelRun struct{ id, pixels uint32 }
)

// nearest returns the index of the colour that is nearest to c. It is [color.Palette.Index] without
// interfaces.
func nearest(all []color.RGBA, c color.RGBA) (at int) {
	square := func(x, y uint8) int { return (int(x) - int(y)) * (int(x) - int(y)) }
	least := math.MaxInt
	for i, o := range all {
		if d := square(c.R, o.R) + square(c.G, o.G) + square(c.B, o.B) + square(c.A, o.A); d < least {
			at, least = i, d
		}
	}
	return at
}

// equal returns how many pixels, of 4 bytes each, at the beginning equal the first.
func equal(pix []byte) int {
	first := uint64(binary.LittleEndian.Uint32(pix))
	n, two := 4, first|first<<32
	for n+8 <= len(pix) && binary.LittleEndian.Uint64(pix[n:]) == two {
		n += 8
	}
	for n < len(pix) && binary.LittleEndian.Uint32(pix[n:]) == uint32(first) {
		n += 4
	}
	return n / 4
}

// paint draws one mark on a canvas whose origin is at the bottom left.
func (d *drawing) paint(c *vgimg.Canvas, m *mark) {
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

// paintText draws horizontal text pixel by pixel, which takes a fifth of the time of the canvas's
// transformed text.
func (d *drawing) paintText(c *vgimg.Canvas, m *mark, s *style) {
	f, t := face(s), clean(m.text)
	colour, shift := toneOf(s.fill).light, f.Width(t)*font.Length(m.align)/2
	if m.kind == text {
		dpi := float64(d.dpi())
		pixels := dpi / 72 // a drawing unit
		drawer := xfont.Drawer{Dst: c.Image(), Src: image.NewUniform(colour), Face: f.FontFace(dpi)}
		drawer.Dot.X = fixed.Int26_6(math.Round((m.at[0].x - shift.Points()) * pixels * 64))
		drawer.Dot.Y = fixed.Int26_6(math.Round(m.at[0].y * pixels * 64))
		drawer.DrawString(t)
		return
	}
	c.SetColor(colour)
	c.Push()
	c.Translate(vg.Point{X: vg.Length(m.at[0].x), Y: vg.Length(d.h - m.at[0].y)})
	c.Rotate(math.Pi / 2)
	c.FillString(f, vg.Point{X: -shift}, t)
	c.Pop()
}
