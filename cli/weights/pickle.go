package weights

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// pickleDict is a dictionary, in the order of its entries.
type pickleDict struct{ keys, values []any }

// get returns the value of a name; nil: there is none.
func (d *pickleDict) get(name string) any {
	for i, k := range d.keys {
		if k == name {
			return d.values[i]
		}
	}
	return nil
}

// pickleList is a list; pickleGlobal is the name of a class or function: "torch.FloatStorage".
type (
	pickleList   struct{ items []any }
	pickleGlobal string
)

// unpickle interprets a pickle of protocol 2, as torch.save writes it. It knows the operations of
// plain values, lists and dictionaries; classes and functions are names that [construct] and
// [storageOf] know or refuse. No length in the input makes it allocate more than the input holds.
func unpickle(text []byte) (*pickleDict, error) {
	m := pickle{r: bytes.NewReader(text), memo: map[uint32]any{}}
	for {
		more, err := m.step()
		if err != nil {
			return nil, fmt.Errorf("its pickle cannot be read: %w", err)
		}
		if !more {
			break
		}
	}
	if d, ok := m.top().(*pickleDict); ok {
		return d, nil
	}
	return nil, errors.New("it holds no dictionary of tensors")
}

// pickle is the state of the interpreter.
type pickle struct {
	r     *bytes.Reader
	stack []any
	marks []int
	memo  map[uint32]any
}

var errPickle = errors.New("it is damaged")

func (m *pickle) push(v any) { m.stack = append(m.stack, v) }

func (m *pickle) top() any {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// pop removes the last n values; ok is false if a mark or the bottom is in the way.
func (m *pickle) pop(n int) (values []any, err error) {
	low := 0
	if len(m.marks) > 0 {
		low = m.marks[len(m.marks)-1]
	}
	if len(m.stack)-n < low {
		return nil, errPickle
	}
	values = append(values, m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return values, nil
}

// popMark removes the values after the last mark, and the mark.
func (m *pickle) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, errPickle
	}
	values, err := m.pop(len(m.stack) - m.marks[len(m.marks)-1])
	m.marks = m.marks[:len(m.marks)-1]
	return values, err
}

// number reads an integer of size bytes, little-endian.
func (m *pickle) number(size int) uint64 {
	var b [8]byte
	if _, err := io.ReadFull(m.r, b[:size]); err != nil {
		m.r.Reset(nil) // so that the next operation fails
	}
	return binary.LittleEndian.Uint64(b[:])
}

// text reads size bytes.
func (m *pickle) text(size uint64) (string, error) {
	if size > uint64(m.r.Len()) {
		return "", errPickle
	}
	b := make([]byte, size)
	_, err := io.ReadFull(m.r, b)
	return string(b), err
}

// step runs one operation; more is false after the last.
func (m *pickle) step() (more bool, err error) {
	op, err := m.r.ReadByte()
	if err != nil {
		return false, errPickle
	}
	switch op {
	case '.':
		return false, nil
	case 0x80: // PROTO
		m.number(1)
	case '(':
		m.marks = append(m.marks, len(m.stack))
	case 'q', 'r': // BINPUT, LONG_BINPUT
		m.memo[uint32(m.number(map[byte]int{'q': 1, 'r': 4}[op]))] = m.top()
	case 'h', 'j': // BINGET, LONG_BINGET
		v, ok := m.memo[uint32(m.number(map[byte]int{'h': 1, 'j': 4}[op]))]
		if !ok {
			return false, errPickle
		}
		m.push(v)
	case 's', 'u', 'a', 'e', 'b', 'R', 'Q', 't', 0x81, 0x85, 0x86, 0x87:
		return true, m.combine(op)
	default:
		return true, m.value(op)
	}
	return true, nil
}

// value runs an operation that pushes a value.
func (m *pickle) value(op byte) error {
	switch op {
	case 'N':
		m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
	case '}':
		m.push(&pickleDict{})
	case ']':
		m.push(&pickleList{})
	case ')':
		m.push([]any{})
	case 'K':
		m.push(int64(m.number(1)))
	case 'M':
		m.push(int64(m.number(2)))
	case 'J':
		m.push(int64(int32(m.number(4))))
	case 'G': // BINFLOAT, which is big-endian
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], m.number(8))
		m.push(math.Float64frombits(binary.BigEndian.Uint64(b[:])))
	case 0x8a: // LONG1
		size := m.number(1)
		if size > 8 {
			return errPickle
		}
		v := int64(m.number(int(size)))
		if size > 0 && size < 8 { // extend the sign
			v = v << (64 - 8*size) >> (64 - 8*size)
		}
		m.push(v)
	case 'X': // BINUNICODE
		s, err := m.text(m.number(4))
		m.push(s)
		return err
	case 'c': // GLOBAL: two lines
		var lines [2][]byte
		for i := range lines {
			for b, err := m.r.ReadByte(); b != '\n'; b, err = m.r.ReadByte() {
				if err != nil {
					return errPickle
				}
				lines[i] = append(lines[i], b)
			}
		}
		m.push(pickleGlobal(fmt.Sprintf("%s.%s", lines[0], lines[1])))
	default:
		return fmt.Errorf("operation %#02x is not one of those that a dictionary of tensors needs", op)
	}
	return nil
}

// combine runs an operation on values of the stack.
func (m *pickle) combine(op byte) (err error) {
	var v []any
	switch op {
	case 'u', 'e', 't':
		v, err = m.popMark()
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		v, err = m.pop(int(op) - 0x84)
	case 's', 'R', 0x81:
		v, err = m.pop(2)
	default:
		v, err = m.pop(1)
	}
	if err != nil {
		return err
	}
	switch op {
	case 't', 0x85, 0x86, 0x87:
		m.push(v)
	case 's', 'u': // SETITEM, SETITEMS
		d, ok := m.top().(*pickleDict)
		if !ok || len(v)%2 != 0 {
			return errPickle
		}
		for i := 0; i < len(v); i += 2 {
			d.keys, d.values = append(d.keys, v[i]), append(d.values, v[i+1])
		}
	case 'a', 'e': // APPEND, APPENDS
		l, ok := m.top().(*pickleList)
		if !ok {
			return errPickle
		}
		l.items = append(l.items, v...)
	case 'b': // BUILD: the attributes of a dictionary, which are not needed
		if _, ok := m.top().(*pickleDict); !ok {
			return fmt.Errorf("it sets attributes of %T", m.top())
		}
	case 'Q': // BINPERSID
		v[0], err = storageOf(v[0])
		m.push(v[0])
	case 0x81: // NEWOBJ
		if g, ok := v[0].(pickleGlobal); ok {
			return &objectError{g}
		}
		return errPickle
	case 'R': // REDUCE
		g, ok := v[0].(pickleGlobal)
		args, isTuple := v[1].([]any)
		if !ok || !isTuple {
			return errPickle
		}
		v[0], err = construct(g, args)
		m.push(v[0])
	}
	return err
}
