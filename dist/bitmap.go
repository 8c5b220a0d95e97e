package dist

import "math/bits"

// bitmap is a set of numbers below 64·len(words). A second level has one bit (mark) per non-empty
// word, so that a sparse set can be listed without reading every word.
type bitmap struct {
	words []uint64
	marks []uint64 // bit w is set if words[w] may be non-zero; maintained by setMarked only
}

func newBitmap(d int) *bitmap {
	words := (d + 63) / 64
	return &bitmap{make([]uint64, words), make([]uint64, (words+63)/64)}
}

// setBit sets a bit and returns 1 if it was 0.
func setBit(words []uint64, c uint64) int {
	old := words[c>>6]
	words[c>>6] = old | 1<<(c&63)
	return int(^old >> (c & 63) & 1)
}

// complement inverts the first d bits of a bitmap that has no others.
func complement(words []uint64, d int) {
	for w := range words {
		words[w] = ^words[w]
	}
	if d%64 != 0 {
		words[len(words)-1] &= 1<<(d%64) - 1
	}
}

// drainBits writes the positions of the len(dst) set bits to dst, ascending, each plus offset, and
// clears the bitmap. To avoid unpredictable branches on the number of bits in a word, it writes a
// fixed number of positions per word and overwrites the surplus.
func drainBits(dst []uint32, offset uint32, words []uint64) {
	n, w := 0, 0
	if len(dst) < 2*len(words) {
		n, w = drainPairs(dst, offset, words)
	} else {
		n, w = drainEights(dst, offset, words)
	}
	for ; w < len(words); w++ {
		n = appendBits(dst, n, words[w], offset+uint32(w)*64)
		words[w] = 0
	}
}

// drainPairs is drainBits for words that mostly have up to two bits. It stops near the end of dst,
// where surplus positions would not fit, and returns the numbers of bits and words done.
func drainPairs(dst []uint32, offset uint32, words []uint64) (n, w int) {
	for ; w < len(words) && n+64 <= len(dst); w++ {
		word, base := words[w], offset+uint32(w)*64
		words[w] = 0
		end := n + bits.OnesCount64(word)
		out := (*[2]uint32)(dst[n:])
		out[0] = base + uint32(bits.TrailingZeros64(word))
		word &= word - 1
		out[1] = base + uint32(bits.TrailingZeros64(word))
		word &= word - 1
		if word != 0 {
			appendBits(dst, n+2, word, base)
		}
		n = end
	}
	return n, w
}

// drainEights is drainPairs for words that mostly have up to eight bits.
func drainEights(dst []uint32, offset uint32, words []uint64) (n, w int) {
	for ; w < len(words) && n+64 <= len(dst); w++ {
		word, base := words[w], offset+uint32(w)*64
		words[w] = 0
		end := n + bits.OnesCount64(word)
		for {
			out := (*[8]uint32)(dst[n:])
			out[0] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[1] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[2] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[3] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[4] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[5] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[6] = base + uint32(bits.TrailingZeros64(word))
			word &= word - 1
			out[7] = base + uint32(bits.TrailingZeros64(word))
			if word &= word - 1; word == 0 {
				break
			}
			n += 8
		}
		n = end
	}
	return n, w
}

// appendBits appends the positions of a word's bits to dst[:n] and returns the new n.
func appendBits(dst []uint32, n int, word uint64, base uint32) int {
	for ; word != 0; word &= word - 1 {
		dst[n] = base + uint32(bits.TrailingZeros64(word))
		n++
	}
	return n
}

// setMarked is setBit that also sets the word's mark.
func (b *bitmap) setMarked(c uint64) int {
	b.marks[c>>12] |= 1 << (c >> 6 & 63)
	return setBit(b.words, c)
}

// drainMarked is drainBits for a sparse bitmap whose non-empty words are all marked. It also clears
// the marks. It lists the marked words before it reads them, so that the processor can load many of
// them in parallel.
func (b *bitmap) drainMarked(dst []uint32, offset uint32, words []uint64) {
	const chunk = 16
	var list [64 * (chunk + 1)]uint32
	n := 0
	marks := b.marks[:(len(words)+63)/64]
	for first := 0; first < len(marks); first += chunk {
		listed, _ := drainEights(list[:], uint32(first)*64, marks[first:min(first+chunk, len(marks))])
		n = drainListed(dst, n, offset, words, list[:listed])
	}
}

// drainListed appends the bits of the listed words, none of them empty, to dst[:n], clears the
// words and returns the new n.
func drainListed(dst []uint32, n int, offset uint32, words []uint64, list []uint32) int {
	for _, w := range list {
		word, base := words[w], offset+w*64
		words[w] = 0
		if n+2 > len(dst) {
			n = appendBits(dst, n, word, base)
			continue
		}
		end := n + bits.OnesCount64(word)
		out := (*[2]uint32)(dst[n:])
		out[0] = base + uint32(bits.TrailingZeros64(word))
		word &= word - 1
		out[1] = base + uint32(bits.TrailingZeros64(word))
		if word &= word - 1; word != 0 {
			appendBits(dst, n+2, word, base)
		}
		n = end
	}
	return n
}
