package safetensors

import (
	"encoding/binary"
	"math"
	"reflect"
)

// DType is the element type of a tensor, spelled as in the header of a file.
type DType string

// The supported element types. Tensors of the format's other types are validated and listed, and
// [File.Section] returns their bytes.
const (
	F32  DType = "F32"  // float32
	F64  DType = "F64"  // float64
	F16  DType = "F16"  // IEEE half precision: read only
	BF16 DType = "BF16" // the upper half of a float32: read only
	I64  DType = "I64"  // int64
	U64  DType = "U64"  // uint64
	U8   DType = "U8"   // uint8
)

// bitsOf is the size in bits of one element of every type of the format.
var bitsOf = map[DType]uint64{
	"BOOL": 8, U8: 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"I16": 16, "U16": 16, F16: 16, BF16: 16,
	"I32": 32, "U32": 32, F32: 32,
	I64: 64, U64: 64, F64: 64, "C64": 64,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}

// Width is the size in bytes of an element of whole bytes; 0: the type is not known.
func (t DType) Width() int64 { return int64(bitsOf[t] / 8) }

// Element lists the Go types of tensors, one for each [DType] constant.
type Element interface {
	float32 | float64 | int64 | uint64 | uint8
}

// dtypeOf returns the element type and the number of elements of a slice of an [Element] or a
// [Lazy]; ok is false for any other value.
func dtypeOf(values any) (t DType, n int, ok bool) {
	switch v := values.(type) {
	case []float32:
		return F32, len(v), true
	case []float64:
		return F64, len(v), true
	case []int64:
		return I64, len(v), true
	case []uint64:
		return U64, len(v), true
	case []uint8:
		return U8, len(v), true
	case Lazy:
		return F32, v.Len, true
	}
	return "", 0, false
}

// slice is values[lo:hi].
func slice(values any, lo, hi int) any { return reflect.ValueOf(values).Slice(lo, hi).Interface() }

// encode writes values, a slice of an [Element], to dst and returns the bytes written. dst must
// have room.
func encode(dst []byte, values any) []byte {
	n, err := binary.Encode(dst, binary.LittleEndian, values)
	if err != nil {
		panic("safetensors: " + err.Error())
	}
	return dst[:n]
}

// decode fills dst, a slice of an [Element], from src, which must hold exactly its bytes.
func decode(dst any, src []byte) {
	if _, err := binary.Decode(src, binary.LittleEndian, dst); err != nil {
		panic("safetensors: " + err.Error())
	}
}

// Floats decodes raw bytes of a floating-point type, which Section returns; ok is false for a type
// of other numbers. Numbers beyond the range of float32 become infinite.
func Floats(t DType, raw []byte) (values []float32, ok bool) {
	width := int(t.Width())
	var one func(b []byte) float32
	switch le := binary.LittleEndian; t {
	case F32:
		one = func(b []byte) float32 { return math.Float32frombits(le.Uint32(b)) }
	case F64:
		one = func(b []byte) float32 { return float32(math.Float64frombits(le.Uint64(b))) }
	case BF16:
		one = func(b []byte) float32 { return math.Float32frombits(uint32(le.Uint16(b)) << 16) }
	case F16:
		one = func(b []byte) float32 { return half(le.Uint16(b)) }
	default:
		return nil, false
	}
	values = make([]float32, len(raw)/width)
	for i := range values {
		values[i] = one(raw[i*width:])
	}
	return values, true
}

// half converts from half precision: 1 bit of sign, 5 of exponent, 10 of fraction.
func half(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // zero and subnormal numbers
		return math.Float32frombits(math.Float32bits(float32(fraction)*0x1p-24) | sign)
	case 31:
		return math.Float32frombits(sign | 255<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
