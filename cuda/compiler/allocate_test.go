package compiler

import (
	"testing"

	"fspda/device"
	"fspda/model"
)

// arenaCheck records which value each 64 bytes of the arena hold.
type arenaCheck struct {
	t       *testing.T
	what    string
	holds   map[int]int // the value at each address
	written map[int]bool
}

// run checks that the operands of a task still hold their values, and records those that it writes.
func (c *arenaCheck) run(x *Task) {
	var made []*Operand
	for _, o := range x.operandPtrs() {
		if o.value < 0 {
			continue
		}
		if o.Offset%float32AlignBytes != 0 {
			c.t.Errorf("%s: %s: offset %d is no multiple of %d", c.what, x.Title(), o.Offset, float32AlignBytes)
		}
		if !c.written[o.value] {
			made = append(made, o)
			continue
		}
		for _, at := range c.units(x, o) {
			if c.holds[at] != o.value {
				c.t.Errorf("%s: %s reads value %d, but byte %d holds value %d", c.what, x.Title(), o.value, at,
					c.holds[at])
				return
			}
		}
	}
	for _, o := range made {
		c.written[o.value] = true
		for _, at := range c.units(x, o) {
			c.holds[at] = o.value
		}
	}
	for _, o := range made { // outputs of one task do not overlap
		for _, at := range c.units(x, o) {
			if c.holds[at] != o.value {
				c.t.Errorf("%s: %s writes values %d and %d to byte %d", c.what, x.Title(), o.value, c.holds[at], at)
				return
			}
		}
	}
}

func (c *arenaCheck) units(x *Task, o *Operand) (all []int) {
	size := o.Bytes()
	if x.Saved != nil && x.Saved.ByMask && o == &x.Saved.Operands[0] {
		size = o.Len
	}
	for at := o.Offset; at < o.Offset+size; at += float32AlignBytes {
		all = append(all, at)
	}
	return all
}

func checkArena(t *testing.T, what string, p *Plan) {
	t.Helper()
	c := arenaCheck{t, what, map[int]int{}, map[int]bool{}}
	for i := range p.Tasks {
		c.run(&p.Tasks[i])
	}
}

// Every task reads the values that its code reads there, however fusions move the reads.
func TestTasksReadTheirValues(t *testing.T) {
	for _, o := range []model.ResNetOptions{
		{Depth: 20, Height: 8, Width: 8, Classes: 4, WeightDecay: 1e-4},
		{Depth: 50, Height: 32, Width: 32, Classes: 4},
		{Depth: 18, Height: 32, Width: 32, Classes: 4, Recompute: model.RecomputeBlocks},
	} {
		net, err := model.ResNet(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []model.Kind{model.Train, model.Score, model.Step} {
			code, err := net.Plan(2, kind)
			if err != nil {
				t.Fatal(err)
			}
			for _, noFusion := range []bool{false, true} {
				p, err := Compile(code.Code(), Options{Precision: FP32, NoFusion: noFusion})
				if err != nil {
					t.Fatal(err)
				}
				checkArena(t, net.Name()+" "+kind.String(), p)
				if p.Arena > code.Bytes()*103/100 {
					t.Errorf("%s %s: the arena takes %d bytes, that of the code %d", net.Name(), kind, p.Arena,
						code.Bytes())
				}
			}
		}
	}
}

// The input of a normalisation whose scale and shift the next one applies is overwritten in place
// between the two: the call in between gets memory of its own.
func TestInPlaceCallBetweenFusedCalls(t *testing.T) {
	at := func(off, n int) device.Ref { return device.Ref{Space: device.Arena, Off: off, Len: n} }
	params := func(off int) device.Ref { return device.Ref{Space: device.Params, Off: off, Len: 8} }
	input := device.Ref{Space: device.Input, Len: 32}
	scale := func(from, to device.Ref) device.Call {
		return device.Call{Kernel: device.Scale, In: []device.Ref{from}, Out: []device.Ref{to}, Dims: []int{32},
			Attr: 2}
	}
	code := &device.Code{Name: "in place", Batch: 4, Features: 8, Dim: 16, Arena: 256, Calls: []device.Call{
		scale(input, at(0, 32)),
		{Kernel: device.BatchNorm, In: []device.Ref{at(0, 32), params(0), params(8)}, Dims: []int{4, 8},
			Out: []device.Ref{at(32, 32), at(64, 8), at(80, 8)}},
		scale(at(0, 32), at(0, 32)),
		{Kernel: device.BatchNormAddReLU, In: []device.Ref{at(0, 32), params(0), params(8), at(32, 32)},
			Dims: []int{4, 8}, Out: []device.Ref{at(96, 32), at(128, 8), at(144, 8)}},
	}}
	for _, precision := range []Precision{FP32, BF16} {
		p, err := Compile(code, Options{Precision: precision})
		if err != nil {
			t.Fatal(err)
		}
		last := &p.Tasks[len(p.Tasks)-1]
		if last.PairSaved == nil {
			t.Errorf("%s: the normalisations are not fused", precision)
		} else if last.In[0].Offset == last.In[3].Offset {
			t.Errorf("%s: both inputs of the fused normalisation are at byte %d", precision, last.In[0].Offset)
		}
		if precision == FP32 {
			checkArena(t, code.Name, p)
		}
	}
}
