package web

import (
	"bytes"
	"image/color"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
)

// pdf returns the drawing as a one-page PDF file with embedded fonts. The file has a fixed date, so
// that equal drawings give equal bytes. (gonum's PDF canvas supports only characters of one code
// page, without the minus sign.)
func (d *drawing) pdf() ([]byte, error) {
	p := fpdf.NewCustom(&fpdf.InitType{UnitStr: "pt", Size: fpdf.SizeType{
		Wd: d.w * d.unit(), Ht: d.h * d.unit()}})
	p.SetCreationDate(time.Unix(0, 0).UTC())
	p.SetModificationDate(time.Unix(0, 0).UTC())
	p.SetCatalogSort(true)
	p.SetTitle(clean(d.alt), true)
	p.SetAutoPageBreak(false, 0)
	p.AddUTF8FontFromBytes("sans", "", liberationsansregular.TTF)
	p.AddUTF8FontFromBytes("sans", "B", liberationsansbold.TTF)
	p.AddPage()
	p.SetLineJoinStyle("round")
	p.TransformBegin()
	p.TransformScale(100*d.unit(), 100*d.unit(), 0, 0)
	for i := range d.marks {
		d.marks[i].pdf(p)
	}
	p.TransformEnd()
	var b bytes.Buffer
	err := p.Output(&b)
	return b.Bytes(), err
}

func (m *mark) pdf(p *fpdf.Fpdf) {
	s := styleOf(m.style)
	if m.kind == text || m.kind == upright {
		m.pdfText(p, s)
		return
	}
	fill := s.fill != "" && m.kind != polyline
	if fill {
		setColour(p.SetFillColor, toneOf(s.fill).light)
		_, _, _, a := faded(toneOf(s.fill).light, s.opacity, m.level).RGBA()
		p.SetAlpha(float64(a)/0xffff, "Normal")
	}
	if s.stroke != "" {
		setColour(p.SetDrawColor, toneOf(s.stroke).light)
		p.SetLineWidth(s.width)
		p.SetDashPattern(s.dash, 0)
	}
	how := "D"
	switch {
	case fill && s.stroke != "":
		how = "DF"
	case fill:
		how = "F"
	}
	m.pdfShape(p, how)
	p.SetAlpha(1, "Normal")
}

// pdfShape draws the outline of a mark.
func (m *mark) pdfShape(p *fpdf.Fpdf, how string) {
	if m.kind == disc {
		p.Circle(m.at[0].x, m.at[0].y, m.r, how)
		return
	}
	if len(m.at) == 0 {
		return
	}
	p.MoveTo(m.at[0].x, m.at[0].y)
	for _, q := range m.at[1:] {
		p.LineTo(q.x, q.y)
	}
	if m.kind == polygon {
		p.ClosePath()
	}
	p.DrawPath(how)
}

func (m *mark) pdfText(p *fpdf.Fpdf, s *style) {
	weight := ""
	if s.bold {
		weight = "B"
	}
	p.SetFont("sans", weight, s.size)
	setColour(p.SetTextColor, toneOf(s.fill).light)
	t := clean(m.text)
	x, y := m.at[0].x, m.at[0].y
	if m.kind == upright {
		p.TransformBegin()
		p.TransformRotate(90, x, y)
		defer p.TransformEnd()
	}
	p.Text(x-p.GetStringWidth(t)*float64(m.align)/2, y, t)
}

// setColour passes a colour to a setter.
func setColour(to func(r, g, b int), c color.RGBA) { to(int(c.R), int(c.G), int(c.B)) }
