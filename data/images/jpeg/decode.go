package jpeg

import (
	"bytes"
	"image"
)

// Decoder decodes one picture at a time. Its zero value is ready for use.
type Decoder struct {
	file    []byte
	at      int // of the first scan's data in file
	w, h    int
	all     [3]component
	parts   []component // the components of the picture
	quant   [4][64]int16
	known   [4]bool         // quant was read
	codes   [2][4]codeTable // of DC and AC
	restart int             // MCUs between two markers, or 0

	scan     []byte // the scan without byte stuffing and markers, and slack
	segments []int  // the end of each restart interval in scan
	bits     bitReader
	unused   [64]int16 // coefficients outside the box
	view     image.YCbCr
}

// component is a plane of the picture.
type component struct {
	id           byte
	across, down int // blocks of an MCU
	quant        byte
	dc, ac       byte
	first        int32   // the last block's first coefficient
	blocks       []int16 // the coefficients of a row of MCUs, under the box
	pix          []uint8
	stride       int
}

// Decode decodes the part of the picture of [Decoder.Header] that contains box, which must not be
// empty or exceed the picture. It returns an [image.YCbCr] or an [image.Gray] whose bounds contain
// box and, within the picture, all chroma samples that interpolation needs. It is valid until the
// next call. An error wraps [ErrDamaged].
func (d *Decoder) Decode(box image.Rectangle) (image.Image, error) {
	if box.Empty() || !box.In(image.Rect(0, 0, d.w, d.h)) {
		panic("jpeg: a box outside the picture")
	}
	if err := d.unstuff(); err != nil {
		return nil, err
	}
	luma := &d.parts[0]
	mw, mh := 8*luma.across, 8*luma.down
	mcus := image.Rect((box.Min.X-2*luma.across)/mw, (box.Min.Y-luma.down)/mh,
		(box.Max.X+luma.across+mw-1)/mw, (box.Max.Y+luma.down+mh-1)/mh)
	mcus = mcus.Intersect(image.Rect(0, 0, (d.w+mw-1)/mw, (d.h+mh-1)/mh))
	for i := range d.parts {
		d.parts[i].resize(mcus)
	}
	if err := d.rows(mcus, (d.w+mw-1)/mw, (d.h+mh-1)/mh); err != nil {
		return nil, err
	}
	bounds := image.Rect(mcus.Min.X*mw, mcus.Min.Y*mh, min(d.w, mcus.Max.X*mw), min(d.h, mcus.Max.Y*mh))
	if len(d.parts) == 1 {
		return &image.Gray{Pix: luma.pix, Stride: luma.stride, Rect: bounds}, nil
	}
	d.view = image.YCbCr{Y: luma.pix, Cb: d.parts[1].pix, Cr: d.parts[2].pix, YStride: luma.stride,
		CStride: d.parts[1].stride, SubsampleRatio: luma.ratio(), Rect: bounds}
	return &d.view, nil
}

// ratio names the sampling of chroma.
func (c *component) ratio() image.YCbCrSubsampleRatio {
	return [2][2]image.YCbCrSubsampleRatio{
		{image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio440},
		{image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420},
	}[c.across-1][c.down-1]
}

// resize makes room for the blocks and pixels of MCUs.
func (c *component) resize(mcus image.Rectangle) {
	row := c.row(mcus)
	c.stride = 8 * row
	c.blocks = grown(c.blocks, c.down*row*64)
	c.pix = grown(c.pix, mcus.Dy()*c.down*8*c.stride)
}

// row is the number of blocks in a row of the plane: an even number, since two are transformed at a
// time.
func (c *component) row(mcus image.Rectangle) int { return (mcus.Dx()*c.across + 1) &^ 1 }

// grown returns a slice of n elements in the memory of s if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// unstuff copies the scan without the zero after each 0xff, and finds its restart intervals. After
// the scan there must be the end of the image: other scans are not supported.
func (d *Decoder) unstuff() error {
	from := d.file[d.at:]
	d.scan, d.segments = grown(d.scan, len(from)+slack)[:0], d.segments[:0]
	for {
		i := bytes.IndexByte(from, 0xff)
		if i < 0 || i+1 >= len(from) {
			return ErrDamaged
		}
		marker := from[i+1]
		switch {
		case marker == 0:
			d.scan = append(d.scan, from[:i+1]...)
		case marker == markerRST0+byte(len(d.segments)%8) && d.restart > 0:
			d.scan = append(d.scan, from[:i]...)
			d.segments = append(d.segments, len(d.scan))
		case marker == markerEOI:
			d.scan = append(d.scan, from[:i]...)
			d.segments = append(d.segments, len(d.scan))
			d.scan = d.scan[:len(d.scan)+slack]
			return nil
		default:
			return ErrDamaged
		}
		from = from[i+2:]
	}
}

// rows decodes all rows of MCUs, of which the picture has w×h.
func (d *Decoder) rows(mcus image.Rectangle, w, h int) error {
	segments, left := d.segments, 0
	if d.restart == 0 {
		left = w * h
		d.begin(0)
	}
	for y := range h {
		wanted := y >= mcus.Min.Y && y < mcus.Max.Y
		if wanted {
			for i := range d.parts {
				clear(d.parts[i].blocks)
			}
		}
		for x := range w {
			if left == 0 {
				begin := 0
				if x+y > 0 {
					begin, segments = segments[0], segments[1:]
				}
				if len(segments) == 0 {
					return ErrDamaged
				}
				d.begin(begin)
				left = d.restart
			}
			left--
			if !d.mcu(x-mcus.Min.X, wanted && x >= mcus.Min.X && x < mcus.Max.X) || d.bits.over(segments[0]) {
				return ErrDamaged
			}
		}
		if wanted {
			for i := range d.parts {
				d.parts[i].transform(&d.quant[d.parts[i].quant], y-mcus.Min.Y)
			}
		}
	}
	if len(segments) > 1 {
		return ErrDamaged
	}
	return nil
}

// begin begins a restart interval.
func (d *Decoder) begin(at int) {
	d.bits = bitReader{data: d.scan, at: at}
	for i := range d.parts {
		d.parts[i].first = 0
	}
}

// mcu reads the blocks of an MCU, the one of number x in the row under the box if it is wanted.
func (d *Decoder) mcu(x int, wanted bool) bool {
	for i := range d.parts {
		c := &d.parts[i]
		dc, ac := &d.codes[0][c.dc], &d.codes[1][c.ac]
		for v := range c.down {
			for u := range c.across {
				to := &d.unused
				if wanted {
					to = (*[64]int16)(c.blocks[64*(v*c.stride/8+x*c.across+u):])
				}
				if !d.bits.block(to, dc, ac, &c.first) {
					return false
				}
			}
		}
	}
	return true
}

// transform computes the pixels of a row of MCUs.
func (c *component) transform(quant *[64]int16, y int) {
	blocks := c.stride / 8
	for v := range c.down {
		inverse(c.pix[(y*c.down+v)*8*c.stride:], c.stride, c.blocks[64*v*blocks:], quant, blocks/2)
	}
}
