package plan

import (
	"fmt"

	"fspda/device"
)

// Dataflow returns the values of code and their uses. Code written by hand has addresses only; then
// the values follow from the memory that its calls overwrite. The error names an operand that reads
// a part of a value, or memory that no call has written.
func Dataflow(code *device.Code) (device.Dataflow, error) {
	if len(code.Dataflow.In) == len(code.Calls) {
		return code.Dataflow, nil
	}
	t := tracer{}
	for i := range code.Calls {
		if err := t.add(&code.Calls[i]); err != nil {
			return device.Dataflow{}, fmt.Errorf("call %d, %s: %w", i, code.Calls[i].Kernel, err)
		}
	}
	for _, r := range code.Results {
		v, err := t.valueAt(r.Ref)
		if err != nil {
			return device.Dataflow{}, fmt.Errorf("result %s: %w", r.Name, err)
		}
		t.flow.Results = append(t.flow.Results, v)
	}
	return t.flow, nil
}

// tracer finds the values of code from its addresses.
type tracer struct {
	flow device.Dataflow
	live []int // the values that are in the arena after the last call
}

func (t *tracer) add(c *device.Call) error {
	in := make([]int, len(c.In))
	for j, r := range c.In {
		v, err := t.read(r)
		if err != nil {
			return fmt.Errorf("input %d: %w", j, err)
		}
		in[j] = v
	}
	out := make([]int, len(c.Out))
	for j, r := range c.Out {
		out[j] = t.write(r, in)
	}
	t.flow.In, t.flow.Out = append(t.flow.In, in), append(t.flow.Out, out)
	return nil
}

// read returns the value of an input, or -1 for an input outside of the arena.
func (t *tracer) read(r device.Ref) (int, error) {
	if r.Space != device.Arena {
		return -1, nil
	}
	v, err := t.valueAt(r)
	if err == nil && t.flow.Values[v].Ref != r {
		err = fmt.Errorf("%s is a part of what was computed at %s, want all of it", r, t.flow.Values[v].Ref)
	}
	return v, err
}

// valueAt returns the value at the first number of an operand in the arena.
func (t *tracer) valueAt(r device.Ref) (int, error) {
	for _, v := range t.live {
		if t.flow.Values[v].Ref.Overlaps(device.Ref{Space: r.Space, Off: r.Off, Len: 1}) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("nothing was computed at %s", r)
}

// write returns the value of an output, or -1, and ends the values that it overwrites.
func (t *tracer) write(r device.Ref, in []int) int {
	if r.Space != device.Arena {
		return -1
	}
	made := device.Value{Ref: r, InPlaceOf: -1}
	for _, v := range in {
		if v >= 0 && t.flow.Values[v].Ref == r {
			made.InPlaceOf = v
		}
	}
	kept := t.live[:0]
	for _, v := range t.live {
		if !t.flow.Values[v].Ref.Overlaps(r) {
			kept = append(kept, v)
		}
	}
	v := len(t.flow.Values)
	t.flow.Values = append(t.flow.Values, made)
	t.live = append(kept, v)
	return v
}
