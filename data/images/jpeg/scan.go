package jpeg

import "cmp"

// spectrum holds fields of the header of a progressive scan (T.81, G.1.1.1): the scan holds the
// coefficients from to to, of which it refines bit low if high is not 0.
type spectrum struct {
	from, to  int
	high, low uint
	run       int // blocks that end without a code
}

// checkScan checks the header of a progressive scan, and records how precise it makes coefficients.
func (d *Decoder) checkScan() error {
	if d.to > 63 || d.from > d.to || d.low > 13 || d.high != 0 && d.high != d.low+1 ||
		(d.from == 0) != (d.to == 0) || d.from > 0 && len(d.inScan) != 1 {
		return ErrDamaged
	}
	for _, i := range d.inScan {
		p := &d.parts[i]
		if d.from == 0 && d.high == 0 && !d.codes[0][p.dc].known || d.from > 0 && !d.codes[1][p.ac].known {
			return ErrDamaged
		}
		for k := d.from; k <= d.to; k++ {
			if uint(p.missing[k]) != cmp.Or(d.high, unsent) {
				return ErrDamaged
			}
			p.missing[k] = uint8(d.low)
		}
	}
	return nil
}

// unsent is the number of bits that a coefficient lacks before its first scan.
const unsent = 255

// scans reads all scans of a progressive picture of w×h MCUs into the components' blocks.
func (d *Decoder) scans(w, h int) error {
	for i := range d.parts {
		p := &d.parts[i]
		p.width = w*p.across + 1 // inverse reads pairs
		p.blocks = grown(p.blocks, 64*(p.width*h*p.down+1))
		clear(p.blocks)
	}
	for !d.ended {
		if err := d.unstuff(); err != nil {
			return err
		}
		if err := d.progressiveScan(w, h); err != nil {
			return err
		}
		if err := d.toScan(); err != nil {
			return err
		}
	}
	for i := range d.parts {
		// libjpeg smooths pictures with less
		if d.parts[i].missing != [64]uint8{} {
			return ErrDamaged
		}
	}
	return nil
}

// progressiveScan reads a scan. The blocks of a single component are in rows of their own, without
// those that only fill an MCU (A.2.2).
func (d *Decoder) progressiveScan(w, h int) error {
	single := len(d.inScan) == 1
	if single {
		p, luma := &d.parts[d.inScan[0]], &d.parts[0]
		w = ((d.w*p.across+luma.across-1)/luma.across + 7) / 8
		h = ((d.h*p.down+luma.down-1)/luma.down + 7) / 8
	}
	i := intervals{d: d}
	for y := range h {
		for x := range w {
			if !i.next(w * h) {
				return ErrDamaged
			}
			for _, k := range d.inScan {
				p := &d.parts[k]
				across, down := p.across, p.down
				if single {
					across, down = 1, 1
				}
				for v := range down {
					for u := range across {
						b := (*[64]int16)(p.blocks[64*((y*down+v)*p.width+x*across+u):])
						if !d.progressiveBlock(b, p) {
							return ErrDamaged
						}
					}
				}
			}
			if i.over() {
				return ErrDamaged
			}
		}
	}
	return i.ended()
}

// progressiveBlock reads the part of a block that a scan holds (G.2).
func (d *Decoder) progressiveBlock(b *[64]int16, p *component) bool {
	switch {
	case d.from == 0 && d.high == 0:
		e := d.bits.code(&d.codes[0][p.dc])
		p.first += e.value
		b[0] = int16(p.first << d.low)
		return e.ok
	case d.from == 0:
		b[0] |= int16(d.bits.take(1) << d.low)
		return true
	case d.high == 0:
		return d.acFirst(b, &d.codes[1][p.ac])
	}
	return d.acRefine(b, &d.codes[1][p.ac])
}

// acFirst reads the upper bits of coefficients.
func (d *Decoder) acFirst(b *[64]int16, t *codeTable) bool {
	if d.run > 0 {
		d.run--
		return true
	}
	for k := d.from; k <= d.to; k++ {
		c := d.bits.code(t)
		if c.skip >= blockEnd {
			d.run = 1<<(c.skip-blockEnd) - 1 + d.bits.take(c.skip-blockEnd)
			return c.ok
		}
		if k += c.skip; !c.ok || k > d.to {
			return false
		}
		b[zigzag[k]] = int16(c.value << d.low)
	}
	return true
}

// acRefine reads a further bit of coefficients that are not 0, and new ones of that size.
func (d *Decoder) acRefine(b *[64]int16, t *codeTable) bool {
	k := d.from
	for ; d.run == 0 && k <= d.to; k++ {
		c := d.bits.code(t)
		switch {
		case !c.ok || c.value > 1 || c.value < -1:
			return false
		case c.skip >= blockEnd:
			d.run = 1<<(c.skip-blockEnd) + d.bits.take(c.skip-blockEnd)
			k--
			continue
		}
		k = d.refine(b, k, c.skip)
		if c.value != 0 {
			if k > d.to {
				return false
			}
			b[zigzag[k]] = int16(c.value << d.low)
		}
	}
	if d.run > 0 {
		d.refine(b, k, 64)
		d.run--
	}
	return true
}

// refine reads a bit for each coefficient from k that is not 0, up to the one behind zeros others,
// whose number it returns.
func (d *Decoder) refine(b *[64]int16, k, zeros int) int {
	bit := int16(1) << d.low
	for ; k <= d.to; k++ {
		switch c := &b[zigzag[k]]; {
		case *c == 0 && zeros == 0:
			return k
		case *c == 0:
			zeros--
		case d.bits.take(1) == 0:
		case *c > 0:
			*c += bit
		default:
			*c -= bit
		}
	}
	return k
}

type code struct {
	skip  int
	value int32
	ok    bool // the code exists
}

// code reads a code and the bits of its value.
func (r *bitReader) code(t *codeTable) code {
	r.fill()
	e := t.look[r.bits>>(64-lookBits)]
	if e == 0 {
		if e = t.search(r.bits); e == 0 {
			return code{}
		}
	}
	c := code{int(e >> 16), e.value(r.bits), true}
	r.bits <<= e & 63
	r.n -= uint(e & 63)
	return c
}

// take reads up to 14 bits.
func (r *bitReader) take(n int) int {
	r.fill()
	v := r.bits >> 1 >> (63 - n)
	r.bits <<= n
	r.n -= uint(n)
	return int(v)
}
