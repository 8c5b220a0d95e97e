package safetensors

import (
	"bytes"
	"math"
	"testing"
)

func TestCodec(t *testing.T) {
	for _, c := range []struct {
		values any
		into   any
		dtype  DType
		bytes  []byte
	}{
		{[]float32{1, -2}, make([]float32, 2), F32, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}},
		{[]float64{1}, make([]float64, 1), F64, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}},
		{[]int64{-2}, make([]int64, 1), I64, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		{[]uint64{258}, make([]uint64, 1), U64, []byte{2, 1, 0, 0, 0, 0, 0, 0}},
		{[]uint8{3, 4}, make([]uint8, 2), U8, []byte{3, 4}},
	} {
		dtype, n, ok := dtypeOf(c.values)
		if dtype != c.dtype || n*int(bitsOf[dtype]) != 8*len(c.bytes) || !ok {
			t.Errorf("%T: %s, %d elements", c.values, dtype, n)
		}
		got := encode(make([]byte, 64), slice(c.values, 0, n))
		if !bytes.Equal(got, c.bytes) {
			t.Errorf("%v: % x, want % x", c.values, got, c.bytes)
		}
		decode(c.into, got)
		if again := encode(make([]byte, 64), c.into); !bytes.Equal(again, c.bytes) {
			t.Errorf("%v came back as %v", c.values, c.into)
		}
		if part := encode(make([]byte, 64), slice(c.values, n, n)); len(part) != 0 {
			t.Errorf("%v: an empty part is % x", c.values, part)
		}
	}
}

func TestCodecPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"no room":   func() { encode(make([]byte, 3), []float32{1}) },
		"too short": func() { decode(make([]float32, 1), make([]byte, 3)) },
		"no slice":  func() { slice(1.5, 0, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// Floats decodes 16-bit numbers exactly, subnormal ones and infinities included.
func TestFloats(t *testing.T) {
	for _, c := range []struct {
		dtype DType
		bits  uint16
		want  float64
	}{
		{F16, 0x3c00, 1}, {F16, 0xc000, -2}, {F16, 0x7bff, 65504}, {F16, 0x0001, 0x1p-24},
		{F16, 0x83ff, -1023 * 0x1p-24},
		{F16, 0x3555, 0x1.554p-2}, {F16, 0xfc00, math.Inf(-1)}, {BF16, 0x3f80, 1}, {BF16, 0xc2f7, -123.5},
		{BF16, 0x0001, 0x1p-133},
	} {
		got, ok := Floats(c.dtype, []byte{byte(c.bits), byte(c.bits >> 8)})
		if !ok || len(got) != 1 || float64(got[0]) != c.want {
			t.Errorf("%s %#04x: %v, want %v", c.dtype, c.bits, got, c.want)
		}
	}
	if got, ok := Floats(F64, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x3f}); !ok || got[0] != 1 {
		t.Errorf("F64: %v", got)
	}
	if _, ok := Floats(I64, make([]byte, 8)); ok {
		t.Error("integers were taken for floating-point numbers")
	}
	if got, _ := Floats(F16, []byte{1, 0x7c}); got[0] == got[0] {
		t.Errorf("a NaN became %v", got[0])
	}
}
