package jpeg

import (
	"bytes"
	"image"
)

// Decoder decodes one picture at a time. Its zero value is ready for use.
type Decoder struct {
	file    []byte
	at      int // the next byte of file
	w, h    int
	all     [3]component
	parts   []component // the components of the picture
	quant   [4][64]int16
	known   [4]bool         // quant was read
	codes   [2][4]codeTable // tables of DC and AC codes
	restart int             // MCUs between two markers, or 0

	progressive bool
	inScan      []int // the components of the scan
	spectrum          // used by progressive scans only
	ended       bool  // there is no further scan

	scan     []byte // the scan without byte stuffing and markers, and slack
	segments []int  // the end of each restart interval in scan
	bits     bitReader
	unused   [64]int16 // coefficients outside the box
	view     image.YCbCr
}

type component struct {
	id           byte
	across, down int // blocks of an MCU
	quant        byte
	dc, ac       byte
	first        int32   // the last block's first coefficient
	blocks       []int16 // the coefficients of a row of MCUs, under the box, or of the whole picture
	width        int     // blocks in a row of blocks
	pix          []uint8
	stride       int
	missing      [64]uint8 // the bits of each coefficient that no scan sent so far
}

// Decode decodes the part of the picture of [Decoder.Header] that contains box, which must not be
// empty or exceed the picture, once for each header. It returns an [image.YCbCr] or an [image.Gray]
// whose bounds contain box and, within the picture, all chroma samples that interpolation needs. It
// is valid until the next call. An error wraps [ErrDamaged].
func (d *Decoder) Decode(box image.Rectangle) (image.Image, error) {
	if box.Empty() || !box.In(image.Rect(0, 0, d.w, d.h)) {
		panic("jpeg: a box outside the picture")
	}
	luma := &d.parts[0]
	mw, mh := 8*luma.across, 8*luma.down
	mcus := image.Rect((box.Min.X-2*luma.across)/mw, (box.Min.Y-luma.down)/mh,
		(box.Max.X+luma.across+mw-1)/mw, (box.Max.Y+luma.down+mh-1)/mh)
	all := image.Rect(0, 0, (d.w+mw-1)/mw, (d.h+mh-1)/mh)
	mcus = mcus.Intersect(all)
	if err := d.planes(mcus, all.Max.X, all.Max.Y); err != nil {
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

// planes decodes the pixels of MCUs, of which the picture has w×h.
func (d *Decoder) planes(mcus image.Rectangle, w, h int) error {
	for i := range d.parts {
		p := &d.parts[i]
		p.stride = (mcus.Dx()*p.across + 1) &^ 1 * 8 // two blocks are transformed at a time
		p.pix = grown(p.pix, mcus.Dy()*p.down*8*p.stride)
	}
	if !d.progressive {
		return d.baseline(mcus, w, h)
	}
	if err := d.scans(w, h); err != nil {
		return err
	}
	for y := range mcus.Dy() {
		d.transform(y, mcus.Min.Y+y, mcus.Min.X)
	}
	return nil
}

// grown returns a slice of n elements in the memory of s if that is large enough.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// unstuff copies the scan without the zero after each 0xff, up to a marker, and finds its restart
// intervals.
func (d *Decoder) unstuff() error {
	from := d.file[d.at:]
	d.scan, d.segments = grown(d.scan, len(from)+slack)[:0], d.segments[:0]
	for {
		i := bytes.IndexByte(from, 0xff)
		if i < 0 || i+1 >= len(from) {
			return ErrDamaged
		}
		switch marker := from[i+1]; {
		case marker == 0:
			d.scan = append(d.scan, from[:i+1]...)
		case marker == markerRST0+byte(len(d.segments)%8) && d.restart > 0:
			d.scan = append(d.scan, from[:i]...)
			d.segments = append(d.segments, len(d.scan))
		default:
			d.scan = append(d.scan, from[:i]...)
			d.segments = append(d.segments, len(d.scan))
			d.scan = d.scan[:len(d.scan)+slack]
			d.at = len(d.file) - len(from) + i
			return nil
		}
		from = from[i+2:]
	}
}

// intervals are the restart intervals of a scan (T.81, E.1.4).
type intervals struct {
	d    *Decoder
	at   int // the number of the interval, from 1
	left int // MCUs
}

// next begins an MCU of all, and an interval where one is due. It reports whether there is one.
func (i *intervals) next(all int) bool {
	d := i.d
	if i.left == 0 {
		if i.at == len(d.segments) {
			return false
		}
		d.bits = bitReader{data: d.scan}
		if i.at > 0 {
			d.bits.at = d.segments[i.at-1]
		}
		for k := range d.parts {
			d.parts[k].first = 0
		}
		d.run = 0
		i.at++
		if i.left = d.restart; i.left == 0 {
			i.left = all
		}
	}
	i.left--
	return true
}

// over reports whether more was read than the interval has.
func (i *intervals) over() bool { return i.d.bits.over(i.d.segments[i.at-1]) }

// ended returns an error if there are further intervals.
func (i *intervals) ended() error {
	if i.at < len(i.d.segments) {
		return ErrDamaged
	}
	return nil
}

// baseline decodes the only scan of a baseline picture row by row.
func (d *Decoder) baseline(mcus image.Rectangle, w, h int) error {
	if err := d.unstuff(); err != nil {
		return err
	}
	if err := d.toScan(); err != nil || !d.ended {
		return ErrDamaged
	}
	for k := range d.parts {
		p := &d.parts[k]
		p.width = p.stride / 8
		p.blocks = grown(p.blocks, 64*p.down*p.width)
	}
	i := intervals{d: d}
	for y := range h {
		wanted := y >= mcus.Min.Y && y < mcus.Max.Y
		if wanted {
			for k := range d.parts {
				clear(d.parts[k].blocks)
			}
		}
		for x := range w {
			if !i.next(w*h) || !d.mcu(x-mcus.Min.X, wanted && x >= mcus.Min.X && x < mcus.Max.X) || i.over() {
				return ErrDamaged
			}
		}
		if wanted {
			d.transform(y-mcus.Min.Y, 0, 0)
		}
	}
	return i.ended()
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
					to = (*[64]int16)(c.blocks[64*(v*c.width+x*c.across+u):])
				}
				if !d.bits.block(to, dc, ac, &c.first) {
					return false
				}
			}
		}
	}
	return true
}

// transform computes the pixels of row y of MCUs under the box, whose blocks belong to a row and a
// column of MCUs.
func (d *Decoder) transform(y, row, column int) {
	for i := range d.parts {
		c := &d.parts[i]
		for v := range c.down {
			inverse(c.pix[(y*c.down+v)*8*c.stride:], c.stride, c.blocks[64*((row*c.down+v)*c.width+column*c.across):],
				&d.quant[c.quant], c.stride/16)
		}
	}
}
