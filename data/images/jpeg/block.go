package jpeg

import "encoding/binary"

// lookBits is the number of bits whose codes one look-up finds. Nearly all codes are shorter.
const lookBits = 10

// An entry of a code table describes a code and the value that follows it: the bits of both
// together in its lowest byte, the bits of the value in the next, and the coefficients to skip
// above. Zero means that the code is longer than lookBits.
type entry uint32

// blockEnd is the skip of the code that ends a block, more than any other can reach. In a
// progressive scan the code ends a run of blocks, and the excess over blockEnd is the length of the
// run.
const blockEnd = 128

// codeTable decodes one Huffman code.
type codeTable struct {
	known bool
	look  [1 << lookBits]entry

	// For codes of lookBits+1 to 16 bits: codes of n bits are less than limit[n], as left-aligned
	// numbers of 16 bits, and the last of them has the entry number limit[n] - 1 - offset[n] in units
	// of its length.
	limit  [17]uint32
	offset [17]int32
	long   []entry // all codes, in order
}

// set makes the table of a list of symbols with counts of codes by length (T.81, annex C).
func (t *codeTable) set(counts [16]uint8, symbols []uint8, dc bool) error {
	t.known = false
	clear(t.look[:])
	t.long = t.long[:0]
	code := uint32(0) // left-aligned in 16 bits
	for i, count := range counts {
		n := i + 1
		step := uint32(1) << (16 - n)
		t.offset[n] = int32(len(t.long)) - int32(code/step)
		for range count {
			if code+step > 1<<16 {
				return ErrDamaged
			}
			e, err := newEntry(n, symbols[len(t.long)], dc)
			if err != nil {
				return err
			}
			t.long = append(t.long, e)
			if n <= lookBits {
				for k := range 1 << (lookBits - n) {
					t.look[code>>(16-lookBits)+uint32(k)] = e
				}
			}
			code += step
		}
		t.limit[n] = code
	}
	t.known = true
	return nil
}

// newEntry describes a code of n bits for a symbol: the bits of a difference, or a run of zeros and
// the bits of a coefficient (F.1.2).
func newEntry(n int, symbol uint8, dc bool) (entry, error) {
	size, skip := int(symbol&15), int(symbol>>4)
	switch {
	case dc && symbol > 11:
		return 0, ErrUnsupported
	case !dc && size == 0 && skip < 15:
		skip += blockEnd
	}
	return entry(n+size) | entry(size)<<8 | entry(skip)<<16, nil
}

// search finds the entry of a code longer than lookBits at the top of bits, or 0.
func (t *codeTable) search(bits uint64) entry {
	top := uint32(bits >> 48)
	for n := lookBits + 1; n <= 16; n++ {
		if top < t.limit[n] {
			return t.long[int32(top>>(16-n))+t.offset[n]]
		}
	}
	return 0
}

// bitReader reads the bits of a list of bytes. It may read slack bytes beyond the end, which its
// user notices by over.
type bitReader struct {
	data []byte // the segments, then slack bytes of any content
	at   int    // the next byte
	bits uint64 // the next n bits, left-aligned
	n    uint
}

// slack is more than the bytes of an MCU: 6 blocks of 64 codes of 16 bits with 15 bits of value.
const slack = 6*64*31/8 + 32

// fill reads bytes until there are at least 56 bits.
func (r *bitReader) fill() {
	r.bits |= binary.BigEndian.Uint64(r.data[r.at:]) >> (r.n & 63)
	r.at += int((63 - r.n) >> 3)
	r.n |= 56
}

// over reports whether more bits were taken than there are before a byte.
func (r *bitReader) over(end int) bool { return 8*r.at-int(r.n) > 8*end }

// block decodes the coefficients of a block (F.2.2) that differ from 0, and adds the difference to
// the first. It reports whether all codes exist and stay within the block.
func (r *bitReader) block(to *[64]int16, dc, ac *codeTable, first *int32) bool {
	r.fill()
	data, at, bits, n := r.data, r.at, r.bits, r.n
	e := dc.look[bits>>(64-lookBits)]
	if e == 0 {
		if e = dc.search(bits); e == 0 {
			return false
		}
	}
	*first += e.value(bits)
	to[0] = int16(*first)
	bits <<= e & 63
	n -= uint(e & 63)
	k := uint(1)
	for k < 64 {
		bits |= binary.BigEndian.Uint64(data[at:]) >> (n & 63)
		at += int((63 - n) >> 3)
		n |= 56
		e := ac.look[bits>>(64-lookBits)]
		if e == 0 {
			if e = ac.search(bits); e == 0 {
				return false
			}
		}
		v := e.value(bits)
		bits <<= e & 63
		n -= uint(e & 63)
		k += uint(e >> 16)
		if k > 63 {
			break
		}
		to[zigzag[k]&63] = int16(v)
		k++
	}
	r.at, r.bits, r.n = at, bits, n
	return k == 64 || k >= blockEnd
}

// value returns the number that follows the code of e at the top of bits (F.2.2.1, EXTEND): its
// size bits, less 2^size-1 if the first of them is 0.
func (e entry) value(bits uint64) int32 {
	size := e >> 8 & 15
	mask := uint64(1)<<size - 1
	v := bits >> (64 - e&63) & mask
	negative := uint64(int64(bits<<((e-size)&63))>>63) ^ (1<<64 - 1)
	return int32(v - negative&mask)
}
