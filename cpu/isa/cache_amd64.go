//go:build !noasm && !fspda_noasm

package isa

// cpuid returns what the processor says of itself.
func cpuid(leaf, part uint32) (a, b, c, d uint32)

// Cache returns the vendor of the processor, and the bytes of a core's first-level cache of data; ""
// and 0 where that is not known.
func Cache() (vendor string, bytes int) {
	last, b, c, d := cpuid(0, 0)
	for _, part := range []uint32{b, d, c} {
		vendor += string([]byte{byte(part), byte(part >> 8), byte(part >> 16), byte(part >> 24)})
	}
	leaf := uint32(4)
	if last < leaf || vendor == "AuthenticAMD" {
		if leaf = 0x8000001d; !hasLeaf(leaf) {
			return vendor, 0
		}
	}
	for i := range uint32(8) {
		a, b, sets, _ := cpuid(leaf, i)
		const data, none = 1, 0
		switch kind, level := a&31, a>>5&7; {
		case kind == none:
			return vendor, 0
		case kind == data && level == 1:
			return vendor, int((b>>22 + 1) * (b>>12&1023 + 1) * (b&4095 + 1) * (sets + 1))
		}
	}
	return vendor, 0
}

// hasLeaf reports whether the processor answers an extended question.
func hasLeaf(leaf uint32) bool {
	last, _, _, _ := cpuid(0x80000000, 0)
	return last >= leaf
}
