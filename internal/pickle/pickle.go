// Package pickle reads pickles of Python without running anything: plain values, lists and
// dictionaries, and objects of classes that the caller knows.
package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Dict is a dictionary, in the order of its entries.
type Dict struct{ Keys, Values []any }

func (d *Dict) Get(name string) any {
	for i, k := range d.Keys {
		if k == name {
			return d.Values[i]
		}
	}
	return nil
}

// List is a list.
type List struct{ Items []any }

// Global is the name of a class or function: "torch.FloatStorage".
type Global string

// Classes makes the objects of a pickle. It returns errors for classes that it does not know.
type Classes interface {
	// Construct applies a class or function to its arguments.
	Construct(class Global, args []any) (any, error)
	// Persistent returns the object of a persistent id.
	Persistent(id any) (any, error)
	// SetState sets the attributes of an object that Construct made.
	SetState(object, state any) error
}

// Load reads a pickle of protocol 2 to 5. Numbers are int64 and float64, texts and bytes are
// strings, tuples are []any. No length in the input makes it allocate more than the input holds.
func Load(text []byte, c Classes) (any, error) {
	m := machine{r: bytes.NewReader(text), memo: map[uint32]any{}, classes: c}
	for {
		more, err := m.step()
		if err != nil {
			return nil, fmt.Errorf("its pickle cannot be read: %w", err)
		}
		if !more {
			return m.top(), nil
		}
	}
}

// machine is the state of the interpreter.
type machine struct {
	r     *bytes.Reader
	stack []any
	marks []int
	memo  map[uint32]any

	classes Classes
}

var errDamaged = errors.New("it is damaged")

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

func (m *machine) top() any {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// pop removes the last n values; ok is false if a mark or the bottom is in the way.
func (m *machine) pop(n int) (values []any, err error) {
	low := 0
	if len(m.marks) > 0 {
		low = m.marks[len(m.marks)-1]
	}
	if len(m.stack)-n < low {
		return nil, errDamaged
	}
	values = append(values, m.stack[len(m.stack)-n:]...)
	m.stack = m.stack[:len(m.stack)-n]
	return values, nil
}

// popMark removes the values after the last mark, and the mark.
func (m *machine) popMark() ([]any, error) {
	if len(m.marks) == 0 {
		return nil, errDamaged
	}
	values, err := m.pop(len(m.stack) - m.marks[len(m.marks)-1])
	m.marks = m.marks[:len(m.marks)-1]
	return values, err
}

// number reads an integer of size bytes, little-endian.
func (m *machine) number(size int) uint64 {
	var b [8]byte
	if _, err := io.ReadFull(m.r, b[:size]); err != nil {
		m.r.Reset(nil) // so that the next operation fails
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (m *machine) text(size uint64) (string, error) {
	if size > uint64(m.r.Len()) {
		return "", errDamaged
	}
	b := make([]byte, size)
	_, err := io.ReadFull(m.r, b)
	return string(b), err
}

// step runs one operation; more is false after the last.
func (m *machine) step() (more bool, err error) {
	op, err := m.r.ReadByte()
	if err != nil {
		return false, errDamaged
	}
	switch op {
	case '.':
		return false, nil
	case 0x80: // PROTO
		m.number(1)
	case 0x95: // FRAME
		m.number(8)
	case 0x94: // MEMOIZE
		m.memo[uint32(len(m.memo))] = m.top()
	case '(':
		m.marks = append(m.marks, len(m.stack))
	case 'q', 'r': // BINPUT, LONG_BINPUT
		m.memo[uint32(m.number(map[byte]int{'q': 1, 'r': 4}[op]))] = m.top()
	case 'h', 'j': // BINGET, LONG_BINGET
		v, ok := m.memo[uint32(m.number(map[byte]int{'h': 1, 'j': 4}[op]))]
		if !ok {
			return false, errDamaged
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
func (m *machine) value(op byte) error {
	switch op {
	case 'N':
		m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
	case '}':
		m.push(&Dict{})
	case ']':
		m.push(&List{})
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
			return errDamaged
		}
		v := int64(m.number(int(size)))
		if size > 0 && size < 8 { // extend the sign
			v = v << (64 - 8*size) >> (64 - 8*size)
		}
		m.push(v)
	case 'X', 'T', 'B': // BINUNICODE, BINSTRING, BINBYTES
		return m.pushText(4)
	case 0x8c, 'U', 'C': // SHORT_BINUNICODE, SHORT_BINSTRING, SHORT_BINBYTES
		return m.pushText(1)
	case 0x8d, 0x8e: // BINUNICODE8, BINBYTES8
		return m.pushText(8)
	case 0x93: // STACK_GLOBAL
		v, err := m.pop(2)
		if err != nil {
			return err
		}
		m.push(Global(fmt.Sprintf("%v.%v", v...)))
	case 'c': // GLOBAL: two lines
		var lines [2][]byte
		for i := range lines {
			for b, err := m.r.ReadByte(); b != '\n'; b, err = m.r.ReadByte() {
				if err != nil {
					return errDamaged
				}
				lines[i] = append(lines[i], b)
			}
		}
		m.push(Global(fmt.Sprintf("%s.%s", lines[0], lines[1])))
	default:
		return fmt.Errorf("operation %#02x is unknown", op)
	}
	return nil
}

// pushText pushes a text whose length has size bytes.
func (m *machine) pushText(size int) error {
	s, err := m.text(m.number(size))
	m.push(s)
	return err
}

// combine runs an operation on values of the stack.
func (m *machine) combine(op byte) (err error) {
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
		d, ok := m.top().(*Dict)
		if !ok || len(v)%2 != 0 {
			return errDamaged
		}
		for i := 0; i < len(v); i += 2 {
			d.Keys, d.Values = append(d.Keys, v[i]), append(d.Values, v[i+1])
		}
	case 'a', 'e': // APPEND, APPENDS
		l, ok := m.top().(*List)
		if !ok {
			return errDamaged
		}
		l.Items = append(l.Items, v...)
	case 'b': // BUILD
		return m.classes.SetState(m.top(), v[0])
	case 'Q': // BINPERSID
		v[0], err = m.classes.Persistent(v[0])
		m.push(v[0])
	case 'R', 0x81: // REDUCE, NEWOBJ
		g, ok := v[0].(Global)
		args, isTuple := v[1].([]any)
		if !ok || !isTuple {
			return errDamaged
		}
		v[0], err = m.classes.Construct(g, args)
		m.push(v[0])
	}
	return err
}
