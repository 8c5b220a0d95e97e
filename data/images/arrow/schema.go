package arrow

import (
	"errors"
	"fmt"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"
)

// Types of fields (Schema.fbs, union Type).
const (
	typeNull          = 1
	typeInt           = 2
	typeBinary        = 4
	typeUtf8          = 5
	typeBool          = 6
	typeList          = 12
	typeStruct        = 13
	typeUnion         = 14
	typeFixedSizeList = 16
	typeMap           = 17
	typeLargeBinary   = 19
	typeLargeUtf8     = 20
	typeLargeList     = 21
)

// Limits of a schema. A small damaged file can describe very many fields by references to the same
// one.
const (
	maxFields = 10000
	maxDepth  = 32
)

// leaf is a column with the numbers of the node and of the buffers that describe it in a batch.
type leaf struct {
	Field

	bitmaps []int // The buffers that say which rows have a value: of the structs around it, then its own.
	node    int   // The node with the number of rows.
	buffer  int   // The first buffer of values.
}

// schema are the columns in the order of the file. Columns within lists are left out.
type schema struct {
	leaves         []leaf
	nodes, buffers int
	metadata       map[string]string
}

// slot returns the position in a table of the field with that number, or 0.
func slot(t *flatbuffers.Table, n int) flatbuffers.UOffsetT {
	if o := t.Offset(flatbuffers.VOffsetT(4 + 2*n)); o != 0 {
		return flatbuffers.UOffsetT(o) + t.Pos
	}
	return 0
}

func text(t *flatbuffers.Table, n int) string {
	if at := slot(t, n); at != 0 {
		return strings.Clone(t.String(at)) // it would otherwise lie in the memory of the file
	}
	return ""
}

// tables calls visit with the elements of a vector of tables.
func tables(t *flatbuffers.Table, n int, visit func(*flatbuffers.Table) error) error {
	o := t.Offset(flatbuffers.VOffsetT(4 + 2*n))
	if o == 0 {
		return nil
	}
	from := t.Vector(flatbuffers.UOffsetT(o))
	for i := range t.VectorLen(flatbuffers.UOffsetT(o)) {
		e := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(from + flatbuffers.UOffsetT(4*i))}
		if err := visit(&e); err != nil {
			return err
		}
	}
	return nil
}

func parseSchema(t *flatbuffers.Table) (*schema, error) {
	s := &schema{metadata: map[string]string{}}
	if t.GetInt16Slot(4, 0) != 0 {
		return nil, errors.New("a big-endian file")
	}
	err := tables(t, 1, func(f *flatbuffers.Table) error { return s.add(f, "", nil, maxDepth, false) })
	if err != nil {
		return nil, err
	}
	pairs := 0
	err = tables(t, 2, func(pair *flatbuffers.Table) error {
		if pairs++; pairs > maxFields {
			return errors.New("very much metadata")
		}
		s.metadata[text(pair, 0)] = text(pair, 1)
		return nil
	})
	return s, err
}

// add adds a field and its children: nodes and buffers in depth-first order. A listed field has
// other rows than the table.
func (s *schema) add(t *flatbuffers.Table, above string, bitmaps []int, depth int, listed bool) error {
	if depth == 0 || s.nodes > maxFields {
		return errors.New("a schema of very many fields")
	}
	f := Field{Name: above + text(t, 0), Null: t.GetBoolSlot(6, false)}
	kind := t.GetByteSlot(8, 0)
	own := append(bitmaps[:len(bitmaps):len(bitmaps)], s.buffers)
	l := leaf{Field: f, bitmaps: own, node: s.nodes, buffer: s.buffers + 1}
	s.nodes++
	if t.Offset(12) != 0 { // batches hold only indices into a dictionary
		s.buffers += 2
		s.leaves = append(s.leaves, l)
		return nil
	}
	below := listed
	switch kind {
	case typeNull:
	case typeStruct:
		s.buffers++
	case typeFixedSizeList:
		s.buffers++
		below = true
	case typeList, typeMap, typeLargeList:
		s.buffers += 2
		below = true
	case typeBinary, typeUtf8, typeLargeBinary, typeLargeUtf8:
		s.buffers += 3
		l.setBytes(kind)
	default:
		if kind > typeLargeList || kind == 0 || kind == typeUnion {
			return fmt.Errorf("column %s of type %d, which this program does not know", f.Name, kind)
		}
		s.buffers += 2
		l.setFixed(kind, t)
	}
	if kind != typeStruct && !listed {
		s.leaves = append(s.leaves, l)
	}
	return tables(t, 5, func(child *flatbuffers.Table) error {
		return s.add(child, f.Name+".", own, depth-1, below)
	})
}

func (l *leaf) setBytes(kind byte) {
	l.Kind, l.Bits = Bytes, 32
	if kind == typeUtf8 || kind == typeLargeUtf8 {
		l.Kind = String
	}
	if kind >= typeLargeBinary {
		l.Bits = 64
	}
}

// setFixed sets the kind of integers and booleans; other values of a fixed size are not read.
func (l *leaf) setFixed(kind byte, t *flatbuffers.Table) {
	switch kind {
	case typeBool:
		l.Kind = Bool
	case typeInt:
		var of flatbuffers.Table
		t.Union(&of, flatbuffers.UOffsetT(t.Offset(10)))
		l.Bits, l.Signed = int(of.GetInt32Slot(4, 0)), of.GetBoolSlot(6, false)
		switch l.Bits {
		case 8, 16, 32, 64:
			l.Kind = Int
		}
	}
}
