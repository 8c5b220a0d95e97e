package asmgen

import (
	"fmt"
	"regexp"
	"strconv"
)

// Instructions on pairs of bfloat16 numbers, which neither avo nor Go's assembler has, are written
// as others with the same operands, and rewritten.
var standIn = regexp.MustCompile(`VPMADD52([LH])UQ +Z(\d+), Z(\d+), Z(\d+)`)

var standsFor = map[string]struct {
	name       string
	prefix, op byte // Two bytes of an instruction EVEX.512.0F38.W0.
}{"L": {"VDPBF16PS", 2, 0x52}, "H": {"VCVTNE2PS2BF16", 3, 0x72}}

// PairInstructions rewrites the instructions on pairs of bfloat16 numbers of a file.
func PairInstructions(text []byte) []byte {
	text = standIn.ReplaceAllFunc(text, func(line []byte) []byte {
		m := standIn.FindSubmatch(line)
		i := standsFor[string(m[1])]
		var r [3]int // the second factor, the first, the result
		for k, digits := range m[2:] {
			r[k], _ = strconv.Atoi(string(digits)) // it matches digits only
		}
		code := evex(i.prefix, i.op, r[2], r[1], r[0])
		return fmt.Appendf(nil, "LONG $0x%02x%02x%02x%02x; WORD $0x%02x%02x // %s Z%d, Z%d, Z%d", code[3], code[2],
			code[1], code[0], code[5], code[4], i.name, r[0], r[1], r[2])
	})
	return regexp.MustCompile(`AVX512IFMA`).ReplaceAll(text, []byte("AVX512_BF16"))
}

// evex returns an instruction on registers of 512 bits: EVEX.512.prefix.0F38.W0 op /r.
func evex(prefix, op byte, result, first, second int) [6]byte {
	not := func(r, bit int) byte { return byte(^r>>bit) & 1 }
	return [6]byte{
		0x62,
		not(result, 3)<<7 | not(second, 4)<<6 | not(second, 3)<<5 | not(result, 4)<<4 | 2,
		byte(^first&15)<<3 | 1<<2 | prefix,
		2<<5 | not(first, 4)<<3,
		op,
		3<<6 | byte(result&7)<<3 | byte(second&7),
	}
}
