package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// kind is a type of Thrift's compact protocol.
type kind byte

const (
	kindStop kind = iota
	kindTrue
	kindFalse
	kindByte
	kindInt16
	kindInt32
	kindInt64
	kindDouble
	kindBinary
	kindList
	kindSet
	kindMap
	kindStruct
)

// Limits of a file's description: a value takes some hundred bytes of memory, however small it is
// in the file.
const (
	maxNodes = 1 << 22
	maxDepth = 24
)

// node is a value. For a struct, list holds the fields with their numbers; maps are discarded.
type node struct {
	kind  kind
	id    int16
	n     int64 // an integer, or 1 for true
	bytes []byte
	list  []node
}

// field returns a field of a struct, or nil if it has none of that number and kind.
func (n *node) field(id int16, k kind) *node {
	if n == nil || n.kind != kindStruct {
		return nil
	}
	for i := range n.list {
		if f := &n.list[i]; f.id == id && f.kind == k {
			return f
		}
	}
	return nil
}

// int returns an integer field, or missing if it is absent.
func (n *node) int(id int16, missing int64) int64 {
	for _, k := range []kind{kindInt32, kindInt64} {
		if f := n.field(id, k); f != nil {
			return f.n
		}
	}
	return missing
}

func (n *node) text(id int16) string {
	if f := n.field(id, kindBinary); f != nil {
		return string(f.bytes)
	}
	return ""
}

func (n *node) items(id int16) []node {
	if f := n.field(id, kindList); f != nil {
		return f.list
	}
	return nil
}

// thrift reads the compact protocol of Apache Thrift (thrift-compact-protocol.md), the encoding of
// parquet's footer and page headers.
type thrift struct {
	b     []byte // remaining bytes
	nodes int
}

// parseStruct reads a struct and returns its size in bytes. Truncated input is io.ErrUnexpectedEOF.
func parseStruct(b []byte) (n node, size int, err error) {
	t := &thrift{b: b}
	n, err = t.value(kindStruct, 0)
	return n, len(b) - len(t.b), err
}

func (t *thrift) take(n uint64) ([]byte, error) {
	if n > uint64(len(t.b)) {
		return nil, io.ErrUnexpectedEOF
	}
	b := t.b[:n:n]
	t.b = t.b[n:]
	return b, nil
}

func (t *thrift) byte() (byte, error) {
	b, err := t.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func (t *thrift) uvarint() (uint64, error) {
	v, n := binary.Uvarint(t.b)
	switch {
	case n == 0:
		return 0, io.ErrUnexpectedEOF
	case n < 0:
		return 0, errors.New("an integer of more than 64 bits")
	}
	t.b = t.b[n:]
	return v, nil
}

// varint reads a zigzag integer.
func (t *thrift) varint() (int64, error) {
	v, err := t.uvarint()
	return int64(v>>1) ^ -int64(v&1), err
}

// value reads a value of a kind. The kind itself encodes a boolean.
func (t *thrift) value(k kind, depth int) (n node, err error) {
	n.kind = k
	if t.nodes++; t.nodes > maxNodes || depth > maxDepth {
		return n, fmt.Errorf("more than %d values, or %d within each other", maxNodes, maxDepth)
	}
	switch k {
	case kindTrue:
		n.n = 1
	case kindFalse:
	case kindByte:
		var b byte
		b, err = t.byte()
		n.n = int64(int8(b))
	case kindInt16, kindInt32, kindInt64:
		n.n, err = t.varint()
	case kindDouble:
		_, err = t.take(8) // unused
	case kindBinary:
		var size uint64
		if size, err = t.uvarint(); err == nil {
			n.bytes, err = t.take(size)
		}
	case kindList, kindSet:
		n.list, err = t.list(depth)
	case kindMap:
		err = t.skipMap(depth)
	case kindStruct:
		n.list, err = t.fields(depth)
	default:
		err = fmt.Errorf("a value of unknown kind %d", k)
	}
	return n, err
}

func (t *thrift) fields(depth int) (all []node, err error) {
	id := int16(0)
	for {
		head, err := t.byte()
		if err != nil {
			return nil, err
		}
		k := kind(head & 15)
		if k == kindStop {
			return all, nil
		}
		if step := head >> 4; step > 0 {
			id += int16(step)
		} else {
			v, err := t.varint()
			if err != nil {
				return nil, err
			}
			id = int16(v)
		}
		n, err := t.value(k, depth+1)
		if err != nil {
			return nil, err
		}
		n.id = id
		all = append(all, n)
	}
}

// list reads the items of a list or set. Memory grows with the items read, not with the claimed
// number.
func (t *thrift) list(depth int) (all []node, err error) {
	head, err := t.byte()
	if err != nil {
		return nil, err
	}
	k, count := kind(head&15), uint64(head>>4)
	if count == 15 {
		if count, err = t.uvarint(); err != nil {
			return nil, err
		}
	}
	for range count {
		n, err := t.item(k, depth)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// item reads an item of a list, where a boolean takes a byte.
func (t *thrift) item(k kind, depth int) (node, error) {
	if k == kindTrue || k == kindFalse {
		b, err := t.byte()
		if err != nil {
			return node{}, err
		}
		k = kindFalse
		if b == 1 {
			k = kindTrue
		}
	}
	return t.value(k, depth+1)
}

func (t *thrift) skipMap(depth int) error {
	count, err := t.uvarint()
	if err != nil || count == 0 {
		return err
	}
	kinds, err := t.byte()
	if err != nil {
		return err
	}
	for range count {
		for _, k := range []kind{kind(kinds >> 4), kind(kinds & 15)} {
			if _, err := t.item(k, depth); err != nil {
				return err
			}
		}
	}
	return nil
}
