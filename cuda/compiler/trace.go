package compiler

import (
	"fmt"

	"fspda/device"
	"fspda/device/plan"
	"fspda/device/signature"
)

// value is the numbers that one call writes to a place in the arena, until another overwrites them.
type value struct {
	n      int
	format format
	result bool
	scaled bool   // the value has the loss scale
	wanted []byte // the formats that its readers want: letters of operandFormats

	inPlaceOf  int // the value that its call overwrites in place; -1 if there is none
	plan.Block     // offset and size are in bytes
}

// source is where an operand comes from: a value of the arena, or a part of a vector.
type source struct {
	value int // -1 if the operand is not a value of the arena
	ref   device.Ref
}

// tracedCall is a call with the sources of its operands.
type tracedCall struct {
	call    *device.Call
	in, out []source
}

// trace lists the values of code, in the order of the calls that write them.
type trace struct {
	flow   device.Dataflow
	values []value
	calls  []*tracedCall
}

func newTrace(code *device.Code) (*trace, error) {
	flow, err := plan.Dataflow(code)
	if err != nil {
		return nil, err
	}
	t := &trace{flow: flow}
	for _, v := range flow.Values {
		t.values = append(t.values, value{n: v.Ref.Len, inPlaceOf: v.InPlaceOf})
	}
	for _, v := range flow.Results {
		t.values[v].result = true
	}
	for i := range code.Calls {
		c := &code.Calls[i]
		form, ok := kernelFormats[c.Kernel]
		if !ok {
			return nil, fmt.Errorf("call %d, %s: the GPU has no such kernel in 16 bits", i, signature.Title(c))
		}
		for j, v := range flow.In[i] {
			if v < 0 {
				continue
			}
			letter := form.in[j]
			if letter == 'b' {
				letter = 'w' // only parameters are cast to 16 bits
			}
			t.values[v].wanted = append(t.values[v].wanted, letter)
		}
		t.calls = append(t.calls, &tracedCall{c, sources(c.In, flow.In[i]), sources(c.Out, flow.Out[i])})
	}
	return t, nil
}

func sources(refs []device.Ref, values []int) []source {
	all := make([]source, len(refs))
	for j, r := range refs {
		all[j] = source{values[j], r}
	}
	return all
}
