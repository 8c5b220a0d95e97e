package jpeg

import (
	"encoding/binary"
	"errors"
	"slices"
)

// ErrUnsupported reports a kind of JPEG that this package leaves to image/jpeg.
var ErrUnsupported = errors.New("jpeg: a kind of JPEG that is left to image/jpeg")

// ErrDamaged reports anything that a correct file does not contain.
var ErrDamaged = errors.New("jpeg: damaged")

// The markers of ITU-T T.81, table B.1.
const (
	markerSOF0  = 0xc0 // baseline
	markerSOF1  = 0xc1 // extended, Huffman
	markerSOF2  = 0xc2 // progressive, Huffman
	markerDHT   = 0xc4
	markerSOF15 = 0xcf
	markerRST0  = 0xd0
	markerRST7  = 0xd7
	markerSOI   = 0xd8
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerDQT   = 0xdb
	markerDRI   = 0xdd
	markerAPP14 = 0xee
)

// Header reads a file up to its first scan and returns its width and height. The file must stay
// unchanged until Decode has returned.
func (d *Decoder) Header(file []byte) (w, h int, err error) {
	d.file, d.at, d.parts, d.restart, d.known = file, 2, d.parts[:0], 0, [4]bool{}
	d.progressive, d.ended = false, false
	for class := range d.codes {
		for id := range d.codes[class] {
			d.codes[class][id].known = false
		}
	}
	if len(file) < 4 || file[0] != 0xff || file[1] != markerSOI {
		return 0, 0, ErrDamaged
	}
	if err := d.toScan(); err != nil {
		return 0, 0, err
	}
	if d.ended {
		return 0, 0, ErrDamaged
	}
	return d.w, d.h, nil
}

// toScan reads marker segments up to the header of a scan, or to the end of the image.
func (d *Decoder) toScan() error {
	for {
		if d.at+2 <= len(d.file) && d.file[d.at] == 0xff && d.file[d.at+1] == markerEOI {
			d.ended = true
			return nil
		}
		if d.at+4 > len(d.file) || d.file[d.at] != 0xff {
			return ErrDamaged
		}
		marker := d.file[d.at+1]
		if marker == 0xff { // a fill byte
			d.at++
			continue
		}
		size := int(binary.BigEndian.Uint16(d.file[d.at+2:]))
		if size < 2 || d.at+2+size > len(d.file) {
			return ErrDamaged
		}
		segment := d.file[d.at+4 : d.at+2+size]
		d.at += 2 + size
		if marker == markerSOS {
			return d.scanHeader(segment)
		}
		if err := d.segment(marker, segment); err != nil {
			return err
		}
	}
}

// segment reads a marker segment before a scan.
func (d *Decoder) segment(marker byte, b []byte) error {
	switch {
	case marker == markerDQT:
		return d.quantTables(b)
	case marker == markerDHT:
		return d.codeTables(b)
	case marker >= markerSOF0 && marker <= markerSOF2:
		d.progressive = marker == markerSOF2
		return d.frame(b)
	case marker > markerSOF2 && marker <= markerSOF15:
		return ErrUnsupported
	case marker < markerSOF0 || marker >= markerRST0 && marker <= markerEOI:
		return ErrDamaged
	case marker == markerDRI:
		if len(b) != 2 {
			return ErrDamaged
		}
		d.restart = int(binary.BigEndian.Uint16(b))
	case marker == markerAPP14:
		if len(b) >= 12 && string(b[:5]) == "Adobe" && b[11] != 1 { // not YCbCr
			return ErrUnsupported
		}
	}
	return nil
}

// zigzag is the natural position of each coefficient of a file.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// quantTables reads quantization tables of 8-bit values (B.2.4.1).
func (d *Decoder) quantTables(b []byte) error {
	for ; len(b) >= 65; b = b[65:] {
		if b[0] > 3 {
			return ErrUnsupported
		}
		for k, v := range b[1:65] {
			d.quant[b[0]][zigzag[k]] = int16(v)
		}
		d.known[b[0]] = true
	}
	if len(b) > 0 {
		return ErrDamaged
	}
	return nil
}

// codeTables reads Huffman tables (B.2.4.2).
func (d *Decoder) codeTables(b []byte) error {
	for len(b) > 0 {
		if len(b) < 17 || b[0]>>4 > 1 || b[0]&15 > 3 {
			return ErrDamaged
		}
		n := 0
		for _, c := range b[1:17] {
			n += int(c)
		}
		if n > 256 || len(b) < 17+n {
			return ErrDamaged
		}
		if err := d.codes[b[0]>>4][b[0]&15].set([16]uint8(b[1:17]), b[17:17+n], b[0]>>4 == 0); err != nil {
			return err
		}
		b = b[17+n:]
	}
	return nil
}

// frame reads the frame header (B.2.2).
func (d *Decoder) frame(b []byte) error {
	if len(d.parts) > 0 || len(b) < 6 || len(b) != 6+3*int(b[5]) {
		return ErrDamaged
	}
	d.h, d.w = int(binary.BigEndian.Uint16(b[1:])), int(binary.BigEndian.Uint16(b[3:]))
	if b[0] != 8 || b[5] != 1 && b[5] != 3 || d.w == 0 || d.h == 0 {
		return ErrUnsupported
	}
	ids := ""
	d.parts = d.all[:b[5]]
	for i := range d.parts {
		c, p := b[6+3*i:], &d.parts[i]
		p.id, p.across, p.down, p.quant = c[0], int(c[1]>>4), int(c[1]&15), c[2]
		for k := range p.missing {
			p.missing[k] = unsent
		}
		ids += string(rune(c[0]))
		if p.quant > 3 {
			return ErrDamaged
		}
	}
	return d.sampling(ids)
}

// sampling checks that the components are luma, and chroma at half or full resolution.
func (d *Decoder) sampling(ids string) error {
	luma := &d.parts[0]
	if len(d.parts) == 1 { // its sampling has no meaning
		luma.across, luma.down = 1, 1
		return nil
	}
	if ids == "RGB" || luma.across < 1 || luma.across > 2 || luma.down < 1 || luma.down > 2 ||
		ids[0] == ids[1] || ids[0] == ids[2] || ids[1] == ids[2] {
		return ErrUnsupported
	}
	for _, p := range d.parts[1:] {
		if p.across != 1 || p.down != 1 {
			return ErrUnsupported
		}
	}
	return nil
}

// scanHeader reads the header of a scan (B.2.3). A baseline scan must contain all components.
func (d *Decoder) scanHeader(b []byte) error {
	d.inScan = d.inScan[:0]
	if len(d.parts) == 0 || len(b) < 1 || len(b) != 4+2*int(b[0]) {
		return ErrDamaged
	}
	for i := range int(b[0]) {
		k := slices.IndexFunc(d.parts, func(c component) bool { return c.id == b[1+2*i] })
		if k < 0 || len(d.inScan) > 0 && k <= d.inScan[len(d.inScan)-1] {
			return ErrDamaged
		}
		d.inScan = append(d.inScan, k)
		p := &d.parts[k]
		p.dc, p.ac = b[2+2*i]>>4, b[2+2*i]&15
		if p.dc > 3 || p.ac > 3 || !d.known[p.quant] {
			return ErrDamaged
		}
	}
	last := b[len(b)-3:]
	d.from, d.to, d.high, d.low = int(last[0]), int(last[1]), uint(last[2]>>4), uint(last[2]&15)
	if d.progressive {
		return d.checkScan()
	}
	if len(d.inScan) < len(d.parts) {
		return ErrUnsupported
	}
	if d.from != 0 || d.to != 63 || d.high != 0 || d.low != 0 {
		return ErrDamaged
	}
	for i := range d.parts {
		if p := &d.parts[i]; !d.codes[0][p.dc].known || !d.codes[1][p.ac].known {
			return ErrDamaged
		}
	}
	return nil
}
