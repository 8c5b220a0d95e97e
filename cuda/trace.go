package cuda

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

	over        int // the value whose memory it takes over, since its call works in place; -1: none
	first, last int // the tasks between which it is needed
	at          int // where in the arena, in bytes
}

// home is where an operand comes from: a value of the arena, or a place in a vector.
type home struct {
	value int // -1: none
	ref   device.Ref
}

// traced is a call with what its operands are.
type traced struct {
	call    *device.Call
	in, out []home
}

// trace finds the values of code, in the order of the calls that make them.
type trace struct {
	values []value
	calls  []traced
	now    []home // what the arena holds
}

func traceOf(code *device.Code) (*trace, error) {
	t := &trace{}
	for i := range code.Calls {
		if err := t.add(&code.Calls[i]); err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i, signature.Title(&code.Calls[i]), err)
		}
	}
	for _, r := range code.Results {
		h, err := t.holding(r.Ref)
		if err != nil {
			return nil, fmt.Errorf("result %s: %w", r.Name, err)
		}
		t.values[h.value].result = true
	}
	return t, nil
}

func (t *trace) add(c *device.Call) error {
	form, ok := shortForms[c.Kernel]
	if !ok {
		return fmt.Errorf("the GPU has no such kernel in 16 bits")
	}
	d := traced{call: c}
	for j, r := range c.In {
		h, err := t.read(r)
		if err != nil {
			return fmt.Errorf("input %d: %w", j, err)
		}
		if h.value >= 0 {
			v := &t.values[h.value]
			letter := form.in[j]
			if letter == 'b' {
				letter = 'w' // only parameters have a copy in 16 bits
			}
			v.wanted = append(v.wanted, letter)
		}
		d.in = append(d.in, h)
	}
	for _, r := range c.Out {
		d.out = append(d.out, t.write(r, d.in))
	}
	t.calls = append(t.calls, d)
	return nil
}

// read is what an input is. A part of a value is none: it might be of other bits.
func (t *trace) read(r device.Ref) (home, error) {
	if r.Space != device.Arena {
		return home{-1, r}, nil
	}
	h, err := t.holding(r)
	if err == nil && h.ref != r {
		err = fmt.Errorf("%s is a part of what was computed at %s, want all of it: load it with precision fp32", r,
			h.ref)
	}
	return h, err
}

// holding is the value that holds a place of the arena.
func (t *trace) holding(r device.Ref) (home, error) {
	for _, h := range t.now {
		if h.ref.Off <= r.Off && r.Off < h.ref.Off+h.ref.Len {
			return h, nil
		}
	}
	return home{}, fmt.Errorf("nothing was computed at %s", r)
}

// write is what an output is. It ends the values that it overwrites.
func (t *trace) write(r device.Ref, in []home) home {
	if r.Space != device.Arena {
		return home{-1, r}
	}
	v := value{n: r.Len, over: -1}
	for _, h := range in {
		if h.value >= 0 && h.ref == r {
			v.over = h.value
		}
	}
	kept := t.now[:0]
	for _, h := range t.now {
		if h.ref.Off >= r.Off+r.Len || r.Off >= h.ref.Off+h.ref.Len {
			kept = append(kept, h)
		}
	}
	h := home{len(t.values), r}
	t.values = append(t.values, v)
	t.now = append(kept, h)
	return h
}
