package signature

import (
	"fmt"

	"fspda/device"
)

// Check returns an error unless every call of code has a known kernel and valid operands.
func Check(code *device.Code) error {
	if err := checkSizes(code); err != nil {
		return err
	}
	for i := range code.Calls {
		c := &code.Calls[i]
		if _, err := checkCall(code, c); err != nil {
			return fmt.Errorf("call %d, %s: %w", i, Title(c), err)
		}
	}
	return nil
}

const spaces = int(device.Key) + 1

// checkSizes checks the sizes and results of code.
func checkSizes(code *device.Code) error {
	for _, s := range []struct {
		name       string
		got, least int
	}{
		{"batch", code.Batch, 1}, {"features", code.Features, 0}, {"dim", code.Dim, 0}, {"arena", code.Arena, 0},
		{"buffers", code.Buffers, 0}, {"labels", code.Labels, 0},
	} {
		if s.got < s.least {
			return fmt.Errorf("%s is %d, want at least %d", s.name, s.got, s.least)
		}
	}
	for _, r := range code.Results {
		if r.Ref.Space != device.Arena || r.Ref.Off < 0 || r.Ref.Off >= code.Arena {
			return fmt.Errorf("result %s is at %s, want an element of the arena of "+
				"%d", r.Name, refString(r.Ref), code.Arena)
		}
	}
	return nil
}

func checkCall(code *device.Code, c *device.Call) (Signature, error) {
	e, err := Find(c)
	if err != nil {
		return e, err
	}
	for i, r := range c.In {
		if err := checkRef(code, r); err != nil {
			return e, fmt.Errorf("input %d: %w", i, err)
		}
	}
	for i, r := range c.Out {
		if r.Space != device.Arena && r.Space != device.Grads && r.Space != device.Buffers {
			return e, fmt.Errorf("output %d is at %s, want %s, %s or %s", i, refString(r), device.Arena,
				device.Grads, device.Buffers)
		}
		if err := checkRef(code, r); err != nil {
			return e, fmt.Errorf("output %d: %w", i, err)
		}
	}
	if err := e.Fit(c.Dims, refLengths(c.In), refLengths(c.Out)); err != nil {
		return e, err
	}
	return e, checkOverlap(&e, c)
}

// checkRef checks that r lies within its space.
func checkRef(code *device.Code, r device.Ref) error {
	if int(r.Space) >= spaces {
		return fmt.Errorf("space %d is unknown", r.Space)
	}
	if r.Space == device.Grads && !code.Gradient {
		return fmt.Errorf("%s: this code has no gradient", r)
	}
	size := [spaces]int{
		device.Params:   code.Dim,
		device.Grads:    code.Dim,
		device.Arena:    code.Arena,
		device.Input:    code.Batch * code.Features,
		device.Labels:   code.LabelNumbers(),
		device.Buffers:  code.Buffers,
		device.Momentum: 1,
		device.Key:      4,
	}[r.Space]
	// Off is compared first, so that an overflow of Off + Len cannot hide an error.
	if r.Off < 0 || r.Len < 0 || r.Off > size || r.Len > size-r.Off {
		return fmt.Errorf("%s, want a range within %s[0:%d]", r, r.Space, size)
	}
	return nil
}

// checkOverlap checks that no output overlaps another operand. An output may equal an input if the
// kernel works in place.
func checkOverlap(e *Signature, c *device.Call) error {
	for i, o := range c.Out {
		for j, r := range c.In {
			if o.Overlaps(r) && !(e.InPlace && o == r) {
				return fmt.Errorf("output %d at %s overlaps input %d at %s", i, o, j, r)
			}
		}
		for j, r := range c.Out[:i] {
			if o.Overlaps(r) {
				return fmt.Errorf("output %d at %s overlaps output %d at %s", i, o, j, r)
			}
		}
	}
	return nil
}

// refString formats a Ref whose Space may be unknown.
func refString(r device.Ref) string {
	if int(r.Space) >= spaces {
		return fmt.Sprintf("space %d", r.Space)
	}
	return r.String()
}

func refLengths(refs []device.Ref) []int {
	n := make([]int, len(refs))
	for i, r := range refs {
		n[i] = r.Len
	}
	return n
}
