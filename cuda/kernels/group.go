package kernels

import (
	"fmt"
	"slices"

	"fspda/device"
)

const operand3 = "%[1]s_list:p %[1]s:p %[1]s_offset:l "

var _ = define("group.cu",
	"square_blocks part:p "+fmt.Sprintf(operand3, "x")+"n:l",
	"add_decay loss:p stride:l row_loss:p m:l scale:d terms:i "+decayTerms(),
	"add_scaled "+fmt.Sprintf(operand3, "y")+fmt.Sprintf(operand3, "a")+fmt.Sprintf(operand3, "b")+"c:f n:l",
	"collect out:p arena:p stride:l length:i agents:i",
)

// Group computes the gradients of several agents of one GPU with the same small network together:
// each kernel call of the code is one launch for all agents. Small networks are limited by
// launches, and one agent's products fill a small part of a GPU. An agent's results do not depend
// on the others. Without TensorCores, TF32 and Half only the order of some sums differs from the
// CPU engine's.
type Group struct {
	Agents        int
	Params, Grads Address // lists of the agents' vectors in device memory
	// Arena is the first agent's arena. The arenas of the others follow, Stride float32 numbers
	// apart. Arenas is the list of all arenas.
	Arena, Arenas Address
	Stride        int
	// The batch: a list of the agents' examples as numbers, or all examples as bytes; and all
	// labels as float32, agent by agent.
	Inputs Address
	Bytes  *ByteInputs
	Labels Address
	// Scratch holds GroupScratch float64 numbers. Bad is a row counter, as in SoftmaxCrossEntropy,
	// over the labels of all agents.
	Scratch, Bad Address
	// TensorCores lets products of byte inputs use tensor cores with exact factors: see Gemm.
	TensorCores bool
	TF32        bool       // products on tensor cores with rounded factors
	Half        *GroupHalf // computation in 16 bits; nil for float32
}

// GroupScratch returns the size of Group.Scratch for code and a number of agents, in float64
// numbers.
func GroupScratch(code *device.Code, agents int) int {
	all, h := 0, findHead(code)
	for i := range code.Calls {
		all += agents * scratchOf(h, code, i)
	}
	return all
}

// scratchOf returns the scratch that call i needs per agent.
func scratchOf(h *head, code *device.Code, i int) int {
	switch c := &code.Calls[i]; {
	case h.adds(i):
		return h.partNumbers()
	case c.Kernel == device.SoftmaxCrossEntropy:
		return c.Dims[0]
	case c.Kernel == device.HalfSquare:
		return DotParts(c.Dims[0])
	}
	return 0
}

// Lower converts code to launches for all agents. The error names a kernel that Group does not
// support; such code must run in a program per agent.
func (f Group) Lower(code *device.Code) ([]Call, error) {
	tasks, err := f.tasks(code)
	var calls []Call
	for _, t := range tasks {
		calls = append(calls, t.Call)
	}
	return append(calls, f.endScaling(code.Dim)...), err
}

// task is a call with its operands.
type task struct {
	Call
	reads, writes []device.Ref
}

// scratch is the address space of an agent's part of Group.Scratch.
const scratch = ^device.Space(0)

// tasks returns the calls of code in a valid order of execution.
func (f Group) tasks(code *device.Code) (all []task, err error) {
	h := findHead(code)
	at := 0
	var rows *rowLosses
	for i := 0; i < len(code.Calls); {
		own := f
		own.Scratch += 8 * Address(f.Agents*at)
		c, used := &code.Calls[i], 1
		var made []task
		switch n := countDecays(code, i); {
		case n > 0:
			used = 2 * n
			made, err = own.decay(code.Calls[i:i+used], at, rows)
			rows = nil
		case f.Half == nil && h != nil && (i == h.last || i == h.back):
		case f.Half == nil && h != nil && i == h.last+1:
			made, err = own.headTasks(h, at)
		case f.Half == nil && h.adds(i) && f.Bytes != nil:
			made, err = own.parts(c, at)
		case f.Half == nil && products[c.Kernel].form == "tn":
			var add *device.Call
			if i+1 < len(code.Calls) && code.Calls[i+1].Kernel == device.AddScaled &&
				code.Calls[i+1].Out[0] == c.Out[1] && code.Calls[i+1].In[0] == c.Out[1] {
				add, used = &code.Calls[i+1], 2
			}
			made, err = own.gradientsW(c, add)
		default:
			made, err = own.tasksOf(c, at, scratchOf(h, code, i))
		}
		if err != nil {
			return nil, fmt.Errorf("kernels: %s of layer %s: %w", c.Kernel, c.Name, err)
		}
		if c.Kernel == device.SoftmaxCrossEntropy && addsDecay(code, i) {
			// the call that adds the decay takes the mean of the rows' losses too
			rows = &rowLosses{own.Scratch, made[1].reads[0]}
			made = slices.Delete(made, 1, 2)
		}
		all = append(all, made...)
		for range used {
			at += scratchOf(h, code, i)
			i++
		}
	}
	return all, nil
}

// rowLosses is the losses of all rows, whose mean is still to be computed.
type rowLosses struct {
	at  Address
	ref device.Ref
}

// addsDecay reports whether weight decay is added to the loss of call i right after it.
func addsDecay(code *device.Code, i int) bool {
	return countDecays(code, i+1) > 0 && code.Calls[i+2].Out[0] == code.Calls[i].Out[0]
}

// tasksOf lowers one call with the given scratch at offset at. If it becomes several calls, the
// first writes partial sums to the scratch, the second sums them to the first result, and the
// others work on the other results.
func (f Group) tasksOf(c *device.Call, at, size int) ([]task, error) {
	made, err := f.lower(c)
	switch {
	case err != nil:
		return nil, err
	case len(made) == 1:
		return []task{{made[0], c.In, c.Out}}, nil
	}
	sums, others := []device.Ref{{Space: scratch, Off: at, Len: size}}, c.Out[1:]
	all := []task{{made[0], c.In, append(sums, others...)}, {made[1], sums, c.Out[:1]}}
	for _, more := range made[2:] {
		all = append(all, task{more, others, others})
	}
	return all, nil
}

// products lists the calls that are a matrix product with an epilogue.
var products = map[device.Kernel]struct {
	form     string
	epilogue GemmEpilogue
}{
	device.Linear: {"nt", AddBias}, device.LinearSigmoid: {"nt", BiasSigmoid}, device.LinearReLU: {"nt", BiasReLU},
	device.LinearGradX: {"nn", NoEpilogue}, device.LinearGradXSigmoid: {"nn", SigmoidGrad},
	device.LinearGradXReLU: {"nn", ReLUGrad},
	device.LinearGradW:     {"tn", NoEpilogue}, device.LinearGradWDecay: {"tn", AddScaled},
}

// IsProduct reports whether Group lowers a kernel to a matrix product.
func IsProduct(k device.Kernel) bool {
	_, ok := products[k]
	return ok
}

func (f Group) lower(c *device.Call) ([]Call, error) {
	if _, ok := products[c.Kernel]; ok {
		return f.product(c)
	}
	switch c.Kernel {
	case device.SoftmaxCrossEntropy:
		return f.loss(c)
	case device.HalfSquare:
		return f.halfSquare(c)
	case device.Add:
		return f.addScaled(c, 1)
	case device.AddScaled:
		return f.addScaled(c, float32(c.Attr))
	}
	return nil, fmt.Errorf("a group does not support this kernel")
}

func (f Group) operands(refs ...device.Ref) ([]Operand, error) {
	lists := map[device.Space]Address{device.Params: f.Params, device.Grads: f.Grads, device.Arena: f.Arenas,
		device.Input: f.Inputs}
	all := make([]Operand, len(refs))
	for i, r := range refs {
		list := lists[r.Space]
		if list == 0 && !(r.Space == device.Input && f.Bytes != nil) {
			return nil, fmt.Errorf("operand %s: a group has no such operand", r)
		}
		all[i] = Operand{List: list, Offset: r.Off}
	}
	return all, nil
}

func (f Group) product(c *device.Call) ([]Call, error) {
	g, err := f.gemm(c)
	if err != nil {
		return nil, err
	}
	return []Call{g.Call()}, nil
}

func (f Group) gemm(c *device.Call) (g Gemm, err error) {
	in, err := f.operands(c.In...)
	if err != nil {
		return g, err
	}
	out, err := f.operands(c.Out...)
	if err != nil {
		return g, err
	}
	m, n, k := c.Dims[0], c.Dims[1], c.Dims[2]
	kind := products[c.Kernel]
	g = Gemm{Agents: f.Agents, Form: kind.form, C: out[0], Epilogue: kind.epilogue, Factor: float32(c.Attr),
		TF32: f.TF32, TensorCores: f.TensorCores}
	if len(in) > 2 {
		g.Aux = in[2]
	}
	byteInputs := c.In[0].Space == device.Input && f.Bytes != nil
	switch kind.form {
	case "nt":
		g.M, g.N, g.K, g.A, g.B = m, n, k, in[0], in[1]
	case "nn":
		g.M, g.N, g.K, g.A, g.B = m, k, n, in[0], in[1]
	case "tn":
		g.M, g.N, g.K, g.A, g.B = n, k, m, in[1], in[0]
	}
	if byteInputs {
		if c.In[0].Off != 0 || kind.form == "nn" {
			return g, fmt.Errorf("operand %s: byte inputs must be used whole, as the first factor", c.In[0])
		}
		g.Bytes = f.Bytes
	}
	if s := f.Half; s != nil {
		g.Element, g.Round = s.Element, s.Rounded[c]
		if kind.form == "tn" {
			g.Sums = out[1]
		}
		if s.Scaling != nil && kind.form == "tn" {
			g.Scalers = s.Scaling.Scalers
		}
	}
	return g, nil
}

// inArena returns the address of an operand in the first agent's arena.
func (f Group) inArena(r device.Ref) (Address, error) {
	if r.Space != device.Arena {
		return 0, fmt.Errorf("operand %s: want one in the arena", r)
	}
	return f.Arena + 4*Address(r.Off), nil
}

func (f Group) loss(c *device.Call) ([]Call, error) {
	if want := (device.Ref{Space: device.Labels, Len: c.Dims[0]}); c.In[1] != want {
		return nil, fmt.Errorf("operand %s: want %s", c.In[1], want)
	}
	var at [3]Address
	for i, r := range []device.Ref{c.Out[0], c.Out[1], c.In[0]} {
		var err error
		if at[i], err = f.inArena(r); err != nil {
			return nil, err
		}
	}
	// The kernel requires logits and gradients in one arena per agent.
	calls := softmaxCrossEntropies(f.Agents, f.Stride, at[0], at[1], at[2], f.Labels, f.Scratch, f.Bad, c.Dims[0],
		c.Dims[1], c.Attr)
	return append(calls, f.scaleLoss(at[1], c.Dims[0]*c.Dims[1])...), nil
}

func (f Group) halfSquare(c *device.Call) ([]Call, error) {
	squares, err := f.squares(c)
	if err != nil {
		return nil, err
	}
	to, err := f.inArena(c.Out[0])
	if err != nil {
		return nil, err
	}
	sum := call("dot_sum", blocks(f.Agents*threads, threads), Address(0), to, f.Scratch, DotParts(c.Dims[0]), c.Attr/2,
		f.Stride)
	return []Call{squares, sum}, nil
}

// squares computes the sums of squares of a HalfSquare's blocks into the scratch.
func (f Group) squares(c *device.Call) (Call, error) {
	in, err := f.operands(c.In...)
	if err != nil {
		return Call{}, err
	}
	l := over(32 * DotParts(c.Dims[0]))
	l.Grid[2] = uint32(f.Agents)
	return call("square_blocks", l, f.Scratch, in[0].List, in[0].At, in[0].Offset, c.Dims[0]), nil
}

func (f Group) addScaled(c *device.Call, factor float32) ([]Call, error) {
	o, err := f.operands(c.Out[0], c.In[0], c.In[1])
	if err != nil {
		return nil, err
	}
	l := over(c.Dims[0])
	l.Grid[2] = uint32(f.Agents)
	return []Call{call("add_scaled", l, o[0].List, o[0].At, o[0].Offset, o[1].List, o[1].At, o[1].Offset, o[2].List,
		o[2].At, o[2].Offset, factor, c.Dims[0])}, nil
}

// Collect copies length numbers from each of several arenas, stride numbers apart, to consecutive
// places.
func Collect(out, arenas Address, stride, length, agents int) Call {
	return call("collect", over(agents*length), out, arenas, stride, length, agents)
}
