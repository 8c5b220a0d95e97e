package compiler

import (
	"fmt"

	"fspda/device"
	"fspda/device/plan"
	"fspda/device/signature"
)

// value is what one call writes to the arena, until it is overwritten.
type value struct {
	n      int
	format format
	result bool
	scaled bool   // has the loss scale
	wanted []byte // the formats that its readers want, as letters of operandFormats

	inPlaceOf  int // the value that its call overwrites in place; -1: none
	plan.Block     // in the arena, in bytes
}

// source is where an operand comes from: a value of the arena, or a part of a vector.
type source struct {
	value int // -1: none
	ref   device.Ref
}

// tracedCall is a call with the sources of its operands.
type tracedCall struct {
	call    *device.Call
	in, out []source
}

// trace is the values of code, in the order of the calls that write them.
type trace struct {
	values []value
	calls  []tracedCall
	live   []source // the values in the arena
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
				letter = 'w' // only parameters are cast to 16 bits
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

// read returns the source of an input. A part of a value is an error: it might have another format.
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

// valueAt returns the value at an address of the arena.
func (t *trace) valueAt(r device.Ref) (source, error) {
	for _, s := range t.live {
		if s.ref.Off <= r.Off && r.Off < s.ref.Off+s.ref.Len {
			return s, nil
		}
	}
	return source{}, fmt.Errorf("nothing was computed at %s", r)
}

// write returns the source of an output, and ends the values that it overwrites.
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
