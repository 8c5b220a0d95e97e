package safetensors

import (
	"bytes"
	"strings"
	"testing"
)

// headers are headers, the length of the data after them, and the expected error; "" if valid.
var headers = []struct {
	header string
	data   int
	want   string
}{
	{`{}`, 0, ""},
	{`{}   `, 0, ""},
	{`{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}`, 8, ""},
	{`{"a":{"shape":[],"data_offsets":[0,4],"dtype":"F32","x":{"y":[1]}}}`, 4, ""},
	{`{"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}`, 3,
		""},
	{`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 1,
		""},
	{`{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}`, 2, ""},
	{`{"__metadata__":{"k":"v"}}`, 0, ""},
	{` {}`, 0, "does not start with '{'"},
	{`[]`, 0, "does not start with '{'"},
	{"{\"\xff\":1}", 0, "not valid UTF-8"},
	{`{`, 0, "unexpected EOF"},
	{`{"a`, 0, "EOF"},
	{`{"a"`, 0, "EOF"},
	{`{"a":`, 0, "EOF"},
	{`{"a":{`, 0, "EOF"},
	{`{"a":{"dtype":`, 0, "EOF"},
	{`{"a":{"shape":`, 0, "EOF"},
	{`{"a":{"shape":[`, 0, "EOF"},
	{`{"a":{"x":`, 0, "EOF"},
	{`{"__metadata__":{"k":`, 0, "EOF"},
	{`{} x`, 0, "byte 0x78 after its closing brace"},
	{"{}\n", 0, "byte 0x0a after its closing brace"},
	{`{"a":1}`, 0, "found 1, want an object"},
	{`{1:2}`, 0, "invalid character"},
	{`{"__metadata__":null}`, 0, "want an object"},
	{`{"__metadata__":{"k":1}}`, 0, `metadata "k": found 1, want a string`},
	{`{"__metadata__":{"k":"1","k":"2"}}`, 0, `key "k" is given twice`},
	{`{"__metadata__":{},"__metadata__":{}}`, 0, `key "__metadata__" is given twice`},
	{`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
		2, `key "a" is given twice`},
	{`{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, `key "dtype" is given twice`},
	{`{"a":{"dtype":"U8","shape":[1]}}`, 1, "is missing"},
	{`{"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}}`, 4, "found f32, want an element type"},
	{`{"a":{"dtype":32,"shape":[1],"data_offsets":[0,4]}}`, 4, "found 32, want an element type"},
	{`{"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}}`, 1, "found 1, want an array"},
	{`{"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}}`, 1, "found 1, want an integer"},
	{`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1, "found -1, want an integer"},
	{`{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}`, 1, "found 1.0, want an integer"},
	{`{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}`, 1, "found 1e0, want an integer"},
	{`{"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]}}`, 1, "want an integer"},
	{`{"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}}`, 1, "no whole number of bytes"},
	{`{"a":{"dtype":"U8","shape":[1` + strings.Repeat(",1", 64) + `],"data_offsets":[0,1]}}`, 1,
		"65 dimensions, want at most 64"},
	{`{"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0, "no whole number of bytes"},
	{`{"a":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}}`, 0, "no whole number of bytes"},
	{`{"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}}`, 0, "no whole number of bytes"},
	{`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}}`, 1, "no whole number of bytes"},
	{`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1, "are not a begin and an end"},
	{`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1, "are not a begin and an end"},
	{`{"a":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615]}}`, 1,
		"are not a begin and an end"},
	{`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4, "are 4 bytes, shape [2] of F32 needs 8"},
	{`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2,
		"starts at data byte 1, want 0: bytes before it belong to no tensor"},
	{`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3,
		`tensor "b": starts at data byte 1, want 2: it overlaps`},
	{`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, 2,
		`tensor "b": starts at data byte 1, want 2: it overlaps`},
	{`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 1,
		"ends at data byte 2, the file has 1: it was cut short"},
	{`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 3,
		"the file has 3 bytes of data, its tensors account for 2"},
	{`{}`, 1, "the file has 1 bytes of data, its tensors account for 0"},
}

func TestHeaders(t *testing.T) {
	for _, c := range headers {
		b := raw(c.header, c.data)
		_, err := Read(bytes.NewReader(b), int64(len(b)))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.header, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.header, err, c.want)
		}
	}
}
