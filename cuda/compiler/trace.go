package compiler

import (
	"fmt"

	"fspda/device"
	"fspda/device/signature"
)

// value is what one call writes to the arena, until it is overwritten.
type value struct {
	n      int
	format format
	result bool
	scaled bool   // multiplied by the loss scale
	wanted []byte // what its readers want, letters of their shortForm

	inPlaceOf   int // the value whose memory it takes over, since its call works in place; -1: none
	first, last int // the tasks between which it is needed
	offset      int // where in the arena, in bytes
}

// home is where an operand comes from: a value of the arena, or a place in a vector.
type source struct {
	value int // -1: none
	ref   device.Ref
}

// traced is a call with what its operands are.
type tracedCall struct {
	call    *device.Call
	in, out []source
}

// trace finds the values of code, in the order of the calls that make them.
type trace struct {
	values []value
	calls  []tracedCall
	live   []source // what the arena holds
}

func newTrace(code *device.Code) (*trace, error) {
	t := &trace{}
	for i := range code.Calls {
		if err := t.add(&code.Calls[i]); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, signature.Title(&code.Calls[i]), err)
		}
	}
	for _, r := range code.Results {
		s, err := t.valueAt(r.Ref)
		if err != nil {
			return nil, fmt.Errorf("result %s: %w", r.Name, err)
		}
		t.values[s.value].result = true
	}
	return t, nil
}

func (t *trace) add(c *device.Call) error {
	form, ok := kernelFormats[c.Kernel]
	if !ok {
		return fmt.Errorf("the GPU has no such kernel in 16 bits")
	}
	d := tracedCall{call: c}
	for j, r := range c.In {
		s, err := t.read(r)
		if err != nil {
			return fmt.Errorf("input %d: %w", j, err)
		}
		if s.value >= 0 {
			v := &t.values[s.value]
			letter := form.in[j]
			if letter == 'b' {
				letter = 'w' // only parameters have a copy in 16 bits
			}
			v.wanted = append(v.wanted, letter)
		}
		d.in = append(d.in, s)
	}
	for _, r := range c.Out {
		d.out = append(d.out, t.write(r, d.in))
	}
	t.calls = append(t.calls, d)
	return nil
}

// read is what an input is. A part of a value is none: it might be of other bits.
func (t *trace) read(r device.Ref) (source, error) {
	if r.Space != device.Arena {
		return source{-1, r}, nil
	}
	s, err := t.valueAt(r)
	if err == nil && s.ref != r {
		err = fmt.Errorf("%s is a part of what was computed at %s, want all of it: load it with precision fp32", r,
			s.ref)
	}
	return s, err
}

// holding is the value that holds a place of the arena.
func (t *trace) valueAt(r device.Ref) (source, error) {
	for _, s := range t.live {
		if s.ref.Off <= r.Off && r.Off < s.ref.Off+s.ref.Len {
			return s, nil
		}
	}
	return source{}, fmt.Errorf("nothing was computed at %s", r)
}

// write is what an output is. It ends the values that it overwrites.
func (t *trace) write(r device.Ref, in []source) source {
	if r.Space != device.Arena {
		return source{-1, r}
	}
	v := value{n: r.Len, inPlaceOf: -1}
	for _, s := range in {
		if s.value >= 0 && s.ref == r {
			v.inPlaceOf = s.value
		}
	}
	kept := t.live[:0]
	for _, s := range t.live {
		if s.ref.Off >= r.Off+r.Len || r.Off >= s.ref.Off+s.ref.Len {
			kept = append(kept, s)
		}
	}
	s := source{len(t.values), r}
	t.values = append(t.values, v)
	t.live = append(kept, s)
	return s
}
