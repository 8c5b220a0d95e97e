package dist

import "fmt"

// bitWriter appends numbers of any width to bytes, lowest bit first. The last byte is padded with
// zeros.
type bitWriter struct {
	dst  []byte
	word uint64 // bits not yet in dst, the oldest lowest
	have int    // their number, below 8 between calls
	bits int    // written in total
}

// put writes the lowest width bits of v, width up to 64.
func (w *bitWriter) put(v uint64, width int) {
	w.bits += width
	for width > 32 {
		w.short(v&0xffffffff, 32)
		v, width = v>>32, width-32
	}
	w.short(v, width)
}

func (w *bitWriter) short(v uint64, width int) {
	w.word |= v << w.have
	w.have += width
	for w.have >= 8 {
		w.dst = append(w.dst, byte(w.word))
		w.word >>= 8
		w.have -= 8
	}
}

// bytes pads the last byte and returns all bytes.
func (w *bitWriter) bytes() []byte {
	if w.have > 0 {
		w.dst = append(w.dst, byte(w.word))
		w.word, w.have = 0, 0
	}
	return w.dst
}

// bitReader reads the output of a bitWriter. The caller checks the length first; reading beyond the
// end returns zeros.
type bitReader struct {
	src  []byte
	word uint64
	have int
}

func (r *bitReader) take(width int) uint64 {
	if width > 32 {
		low := r.short(32)
		return low | r.take(width-32)<<32
	}
	return r.short(width)
}

func (r *bitReader) short(width int) uint64 {
	for r.have < width {
		if len(r.src) > 0 {
			r.word |= uint64(r.src[0]) << r.have
			r.src = r.src[1:]
		}
		r.have += 8
	}
	v := r.word & (1<<width - 1)
	r.word >>= width
	r.have -= width
	return v
}

// checkSize returns an error unless a message has the expected number of bits, rounded up to bytes.
func checkSize(codec string, b []byte, bits int) error {
	if want := (bits + 7) / 8; len(b) != want {
		return fmt.Errorf("dist: %s: a message of %d bytes, expected %d; it was truncated, or written by another codec",
			codec, len(b), want)
	}
	return nil
}
