package model

import (
	"fmt"
	"strings"

	"gorgonia.org/tensor"

	"fspda/device"
)

// Plan is a graph compiled to a list of kernel calls with planned memory. It is immutable and
// device-independent, and may be loaded any number of times.
type Plan struct {
	code         *device.Code
	kind         Kind
	lowered      *lowered // the values behind the operands
	unsharedSize int      // length of the arena without reuse of memory
}

func (p *Plan) Code() *device.Code { return p.code }

// Bytes is the size of the arena in bytes. A device needs workspace for its kernels in addition:
// see device.Device.Footprint.
func (p *Plan) Bytes() int { return 4 * p.code.Arena }

// Compile makes the plan of the graph. Parameters are read from the flat parameter vector, and
// gradients are written directly to the flat gradient vector. Every run writes every element of the
// gradient.
func (g *Graph) Compile() (*Plan, error) { return g.compile(true) }

// compile with fuse unset leaves kernels unfused, to test that fusion is bit-identical.
func (g *Graph) compile(fuse bool) (*Plan, error) {
	l, err := lower(g)
	if err != nil {
		return nil, fmt.Errorf("model: compiling %s: %w", g.name, err)
	}
	if fuse {
		l.fuse()
		l.fuseLayers()
	}
	if g.recompute {
		l.recompute()
	}
	tensors := g.builder.layout.tensors
	p := allocate(l, func(param int) int { return tensors[param].Offset })
	code := g.codeOf()
	code.Dim, code.Arena, code.Buffers = g.builder.layout.dim, p.arena, g.buffered()
	for i := range l.steps {
		call := &l.steps[i].call
		call.In, call.Out = refs(l, l.steps[i].in), refs(l, l.steps[i].out)
		code.Calls = append(code.Calls, *call)
		code.FLOPs += flops(call)
	}
	for i, r := range g.results {
		ref := l.values[l.results[i]].ref
		code.Results = append(code.Results, device.Result{Name: r.name, Ref: device.Ref{Space: ref.Space,
			Off: ref.Off + r.off, Len: 1}})
	}
	code.Dataflow = p.dataflow()
	return &Plan{code: code, kind: g.kind, lowered: l, unsharedSize: p.unsharedSize}, nil
}

func refs(l *lowered, values []int) []device.Ref {
	r := make([]device.Ref, len(values))
	for i, v := range values {
		r[i] = l.values[v].ref
	}
	return r
}

// attentionFLOPs counts the two products of attention, for the positions that a token sees.
func attentionFLOPs(c *device.Call) float64 {
	b, t, heads, h := float64(c.Dims[0]), float64(c.Dims[1]), float64(c.Dims[2]), float64(c.Dims[3])
	return 4 * b * heads * h * t * (t + 1) / 2
}

// flops counts a multiplication and an addition for each of the m·n·k products of a matrix kernel
// or a convolution, including products with padding and attention's, twice for its gradient, and
// nothing for other kernels.
func flops(c *device.Call) float64 {
	switch c.Kernel {
	case device.Linear, device.LinearGradX, device.LinearGradW, device.LinearSigmoid,
		device.LinearReLU, device.LinearGradXSigmoid, device.LinearGradXReLU, device.LinearGradWDecay,
		device.Product, device.ProductGradW, device.LinearGELUTanh, device.LinearGELUErf, device.ProductGELUTanh,
		device.ProductGELUErf, device.LinearGradXGELUTanh, device.LinearGradXGELUErf:
		return 2 * float64(c.Dims[0]) * float64(c.Dims[1]) * float64(c.Dims[2])
	case device.Attention:
		return attentionFLOPs(c)
	case device.AttentionGrad:
		return 2 * attentionFLOPs(c)
	case device.Conv, device.ConvGradX, device.ConvGradW:
		g := geometry{stride: c.Dims[7], pad: c.Dims[8]}
		pixels := c.Dims[0] * g.out(c.Dims[1], c.Dims[5]) * g.out(c.Dims[2], c.Dims[6])
		return 2 * float64(pixels) * float64(c.Dims[3]*c.Dims[5]*c.Dims[6]) * float64(c.Dims[4])
	}
	return 0
}

// String lists the calls, one per line, with the layer and the shape and address of every operand.
func (p *Plan) String() string {
	var s strings.Builder
	c := p.code
	fmt.Fprintf(&s, "%s, %v, batch %d: %d parameters, %d calls, %.0f FLOP, arena %d (%d without reuse)\n",
		c.Name, p.kind, c.Batch, c.Dim, len(c.Calls), c.FLOPs, c.Arena, p.unsharedSize)
	for i, call := range c.Calls {
		st := p.lowered.steps[i]
		name := string(call.Kernel)
		if call.Attr != 0 {
			name += fmt.Sprintf("(%v)", call.Attr)
		}
		line := fmt.Sprintf("%3d  %-28s %-11s %s -> %s", i, name, call.Name, p.operands(call.In, st.in),
			p.operands(call.Out, st.out))
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, r := range c.Results {
		fmt.Fprintf(&s, "%s = %s\n", r.Name, r.Ref)
	}
	return s.String()
}

func (p *Plan) operands(refs []device.Ref, values []int) string {
	s := make([]string, len(refs))
	for i, r := range refs {
		s[i] = shapeString(p.lowered.values[values[i]].shape) + " " + r.String()
	}
	return strings.Join(s, ", ")
}

func shapeString(s tensor.Shape) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint([]int(s)), "[]"), " ", "×")
}
