package cpu

import (
	"slices"

	"fspda/cpu/kernel"
	"fspda/device"
	"fspda/device/plan"
)

// halved returns code whose activations have 16 bits in the arena, two to a word, and the operands
// of each call that have them. A value has 16 bits if every call that writes or reads it allows
// that, by its dimensions only. Values that overwrite each other in place have one format. A value
// that only sums write and read has 32 bits, since it may be a sum of gradients of parameters.
func halved(code *device.Code, kernels kernel.Table) (*device.Code, []kernel.Halves) {
	halves := make([]kernel.Halves, len(code.Calls))
	flow, err := plan.Dataflow(code)
	if err != nil { // a call reads a part of a value
		return code, halves
	}
	f := newFormats(flow)
	for i := range code.Calls {
		c := &code.Calls[i]
		h := kernels.Half(c)
		f.use(i, c.Kernel, flow.In[i], c.In, h.Input)
		f.use(i, c.Kernel, flow.Out[i], c.Out, h.Output)
	}
	for _, v := range flow.Results {
		b := f.of(v)
		b.Use(len(code.Calls))
		b.refused = true
	}
	packed := *code
	if packed.Arena = f.pack(); packed.Arena == 0 {
		return code, halves
	}
	packed.Dataflow = device.Dataflow{}
	packed.Calls, packed.Results = slices.Clone(code.Calls), slices.Clone(code.Results)
	for i := range packed.Calls {
		c := &packed.Calls[i]
		c.In, halves[i].In = f.place(flow.In[i], c.In)
		c.Out, halves[i].Out = f.place(flow.Out[i], c.Out)
	}
	for i := range packed.Results {
		packed.Results[i].Ref.Off = f.of(flow.Results[i]).Off
	}
	return &packed, halves
}

// formats are the memory and the formats of the values of code.
type formats struct {
	first  []int // the first value in the memory of a value
	blocks []formatted
}

// formatted is the memory of values that overwrite each other.
type formatted struct {
	plan.Block
	refused    bool // a call does not allow 16 bits
	activation bool // a call other than a sum writes or reads it
}

func (b *formatted) half() bool { return b.activation && !b.refused }

func newFormats(flow device.Dataflow) formats {
	f := formats{make([]int, len(flow.Values)), make([]formatted, len(flow.Values))}
	for v, x := range flow.Values {
		if f.first[v] = v; x.InPlaceOf >= 0 {
			f.first[v] = f.first[x.InPlaceOf]
		}
		f.blocks[v].Size = x.Ref.Len
	}
	return f
}

func (f *formats) of(value int) *formatted { return &f.blocks[f.first[value]] }

// use notes that a call writes or reads values, and which operands it allows to have 16 bits.
func (f *formats) use(call int, k device.Kernel, values []int, refs []device.Ref, allows func(operand int) bool) {
	for i, v := range values {
		if v >= 0 {
			b := f.of(v)
			b.Use(call)
			b.activation = b.activation || k != device.Add
			b.refused = b.refused || !allows(i) || refs[i].Len != b.Size
		}
	}
}

// pack places all values and returns the length of the arena, 0 if none has 16 bits.
func (f *formats) pack() int {
	var used []*plan.Block
	some := false
	for i := range f.blocks {
		b := &f.blocks[i]
		if b.half() {
			b.Size, some = b.Size/2, true
		}
		used = append(used, &b.Block)
	}
	if !some {
		return 0
	}
	return plan.Pack(used, kernel.LineFloats)
}

// place returns the places of operands, and a bit for each that has 16 bits.
func (f *formats) place(values []int, refs []device.Ref) (placed []device.Ref, half uint8) {
	placed = slices.Clone(refs)
	for i, v := range values {
		if v >= 0 {
			b := f.of(v)
			if placed[i].Off = b.Off; b.half() {
				placed[i].Len /= 2
				half |= 1 << i
			}
		}
	}
	return placed, half
}
