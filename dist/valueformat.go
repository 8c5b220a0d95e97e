package dist

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ValueFormat is the number format of plain messages on the wire.
//
// Both ends of an edge must compare the same numbers. Otherwise their increments are not exact
// negatives of each other, and the sum of the duals drifts away from zero. Therefore an agent
// rounds its values in place before it sends them and uses the rounded ones itself; the transport
// then encodes them without a loss. The model keeps its precision.
type ValueFormat string

const (
	FP32 ValueFormat = "fp32"
	FP16 ValueFormat = "fp16" // IEEE 754 binary16: 11 bits of precision, up to 65504; larger numbers become infinite
	BF16 ValueFormat = "bf16" // bfloat16: 8 bits of precision, the range of float32
)

// ValueFormats lists the names of the formats.
func ValueFormats() []string { return []string{string(FP32), string(FP16), string(BF16)} }

// Bits returns the width of a number.
func (f ValueFormat) Bits() int {
	if f == FP16 || f == BF16 {
		return 16
	}
	return 32
}

// Round rounds v in place to the format, to nearest, ties to even.
func (f ValueFormat) Round(v []float32) {
	switch f {
	case FP16:
		for i, x := range v {
			v[i] = fromFP16(toFP16(x))
		}
	case BF16:
		for i, x := range v {
			v[i] = fromBF16(toBF16(x))
		}
	}
}

// Append appends v in the format, little-endian. Numbers that the format can represent are exact.
func (f ValueFormat) Append(dst []byte, v []float32) []byte {
	switch f {
	case FP16:
		for _, x := range v {
			dst = binary.LittleEndian.AppendUint16(dst, toFP16(x))
		}
	case BF16:
		for _, x := range v {
			dst = binary.LittleEndian.AppendUint16(dst, toBF16(x))
		}
	default:
		for _, x := range v {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	}
	return dst
}

// Read decodes b, the output of Append, into dst. b must have as many numbers.
func (f ValueFormat) Read(dst []float32, b []byte) {
	if len(b) != len(dst)*f.Bits()/8 {
		panic(fmt.Sprintf("dist: %d %s values from %d bytes", len(dst), f, len(b)))
	}
	switch f {
	case FP16:
		for i := range dst {
			dst[i] = fromFP16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = fromBF16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	default:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
}

const (
	signBit  = 1 << 31
	infinity = 0xff << 23 // The bits of the float32 infinity.
)

// toFP16 rounds to the nearest, ties to even.
func toFP16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, b := uint16(b&signBit>>16), b&^signBit
	const (
		overflow = 0x477ff000       // 65520, halfway between the largest number and the next power of two
		normal   = (127 - 14) << 23 // 2^-14, the smallest number of full precision
		half     = 126 << 23        // ½: its unit in the last place equals the spacing of subnormal numbers
	)
	switch {
	case b > infinity:
		return sign | 0x7e00 // NaN
	case b >= overflow:
		return sign | 0x7c00
	case b < normal:
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-half) // the addition rounds
	}
	b += 0xfff + b>>13&1 // rounds; a carry goes into the exponent, as it should
	return sign | uint16((b-(127-15)<<23)>>13)
}

func fromFP16(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch e {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(m)*(1.0/(1<<24))))
	case 0x1f:
		return math.Float32frombits(sign | infinity | m<<13)
	}
	return math.Float32frombits(sign | (e+127-15)<<23 | m<<13)
}

// toBF16 rounds to the nearest, ties to even.
func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if b&^signBit > infinity {
		return uint16(b>>16) | 0x40 // NaN, even if its payload bits are cut off
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }
