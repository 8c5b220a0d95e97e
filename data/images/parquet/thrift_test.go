package parquet

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A struct of all kinds, encoded by hand from the definition of the protocol.
func TestThrift(t *testing.T) {
	b := []byte{
		0x15, 0x03, // field 1, int32: -2
		0x18, 2, 'h', 'i', // field 2, binary
		0x11, 0x12, // fields 3 and 4: true, false
		0x19, 0x25, 0x02, 0x80, 0x01, // field 5: a list of two int32: 1, 64
		0x1b, 1, 0x85, 1, 'k', 4, // field 6: a map of one pair
		0x06, 0x28, 0x0a, // field 20 with an explicit number, int64: 5
		0x1c, 0x13, 0xff, 0x00, // field 21: a struct with a byte, -1
		0x17, 0, 0, 0, 0, 0, 0, 0, 0, // field 22: a double
		0x00, 'x', // the end, and the bytes after it
	}
	n, size, err := parseStruct(b)
	if err != nil || size != len(b)-1 {
		t.Fatalf("%d bytes, error %v; want %d", size, err, len(b)-1)
	}
	if n.int(1, 0) != -2 || n.text(2) != "hi" || n.field(3, kindTrue) == nil || n.field(4, kindFalse) == nil ||
		n.int(20, 0) != 5 {
		t.Errorf("fields %+v", n.list)
	}
	if l := n.items(5); len(l) != 2 || l[0].n != 1 || l[1].n != 64 {
		t.Errorf("list %+v", l)
	}
	if inner := n.field(21, kindStruct); inner == nil || inner.list[0].n != -1 {
		t.Errorf("inner struct %+v", inner)
	}
	if n.int(99, 7) != 7 || n.text(1) != "" || n.items(1) != nil || (*node)(nil).int(1, 3) != 3 {
		t.Error("what is missing, or of another kind, is not taken as missing")
	}
	for cut := range b[:len(b)-1] {
		if _, _, err := parseStruct(b[:cut]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: error %v", cut, err)
		}
	}
}

// Claimed lengths of lists and texts cost no memory; deep nesting is an error.
func TestThriftClaims(t *testing.T) {
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"list": {[]byte{0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x7f}, "unexpected EOF"},
		"text": {[]byte{0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, "unexpected EOF"},
		"varint": {[]byte{0x15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
			"more than 64 bits"},
		"map":     {[]byte{0x1b, 0xff, 0xff, 0xff, 0x7f, 0x11}, "unexpected EOF"},
		"depth":   {[]byte(strings.Repeat("\x1c", 100)), "within each other"},
		"unknown": {[]byte{0x1d}, "unknown kind"},
	} {
		if _, _, err := parseStruct(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// The number of values read is limited.
func TestThriftNodes(t *testing.T) {
	b := append([]byte{0x19, 0xf1, 20}, make([]byte, 21)...) // a list of 20 booleans
	for nodes, want := range map[int]bool{maxNodes - 22: true, maxNodes - 21: false} {
		r := &thrift{b: b, nodes: nodes}
		if _, err := r.value(kindStruct, 0); (err == nil) != want {
			t.Errorf("22 values after %d: error %v", nodes, err)
		}
	}
}
