package safetensors

import (
	"bytes"
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
		"no slice":  func() { slice("text", 0, 1) },
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
