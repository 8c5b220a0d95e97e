package kerneltest

import (
	"fmt"
	"slices"

	"fspda/cuda/kernels"
)

const (
	listLength = 5003
	listRounds = 5
	listBlocks = 4 // every GPU has at least this many multiprocessors
)

// listOperands holds the operands of a command list: vectors, coordinates in reverse order, so that
// blocks read numbers that others wrote, and factors of products.
type listOperands struct {
	x, y, z  []float32
	reversed []uint32
	a, b, c  []float32
	bias     []float32
	loss     []float32
	parts    []float64
}

func newListOperands() *listOperands {
	m := &listOperands{x: normals("x", listLength), y: normals("y", listLength), z: normals("z", listLength),
		reversed: make([]uint32, listLength),
		a:        normals("a", 50*130), b: normals("b", 40*130), c: make([]float32, 50*40), bias: normals("bias",
			40), loss: make([]float32, 1), parts: make([]float64, kernels.DotParts(listLength))}
	for i := range m.reversed {
		m.reversed[i] = uint32(listLength - 1 - i)
	}
	return m
}

// phases returns calls that depend on calls of earlier phases.
func (m *listOperands) phases(h *fixture) [][]kernels.Call {
	x, y, z := at(h, m.x), at(h, m.y), at(h, m.z)
	operand := func(v []float32) kernels.Operand { return kernels.Operand{At: at(h, v)} }
	forward := kernels.Gemm{Agents: 1, M: 50, N: 40, K: 130, Form: "nt", A: operand(m.a), B: operand(m.b),
		C: operand(m.c), Epilogue: kernels.BiasSigmoid, Aux: operand(m.bias)}
	backward := kernels.Gemm{Agents: 1, M: 40, N: 130, K: 50, Form: "tn", A: operand(m.c), B: operand(m.a),
		C: operand(m.b), Epilogue: kernels.AddScaled, Aux: operand(m.b), Factor: -0.5}
	bias := kernels.BiasGradient(1, operand(m.bias), operand(m.c), operand(m.bias), -0.5, 50, 40)
	dot := kernels.Dot(0, at(h, m.loss), x, z, at(h, m.parts), listLength, 0.5)
	var all [][]kernels.Call
	for range listRounds {
		sum := kernels.Combine(x, listLength, kernels.Term{A: 0.75, V: y}, kernels.Term{A: 0.5, V: z})
		all = append(all,
			[]kernels.Call{kernels.Gather(y, x, at(h, m.reversed), listLength), forward.Call()},
			[]kernels.Call{sum, backward.Call(), bias},
			dot[:1], dot[1:])
	}
	return all
}

// megakernel compares one launch of the megakernel with separate launches.
func megakernel(h *fixture) {
	want, got := newListOperands(), newListOperands()
	h.run(slices.Concat(want.phases(h)...)...)

	h.runList(listBlocks, got.phases(h))
	for i, v := range [][2][]float32{{got.x, want.x}, {got.y, want.y}, {got.b, want.b}, {got.c, want.c},
		{got.bias, want.bias}, {got.loss, want.loss}} {
		sameBits(h, fmt.Sprintf("a list of many phases: vector %d", i), v[0], v[1])
	}
}

// runList runs phases in one launch of the megakernel.
func (b *fixture) runList(blocks int, phases [][]kernels.Call) {
	list, count := make([]byte, 64<<10), make([]uint32, 1)
	var m kernels.CommandList
	m.Reset(at(b, make([]byte, len(list))), list)
	for phase, calls := range phases {
		for _, c := range calls {
			if !m.Fits(phase+1, 1, len(c.Args), 0) {
				b.Fatalf("a list of %d phases does not fit in %d bytes", phase+1, len(list))
			}
			m.Add(phase, c)
		}
	}
	b.run(m.Call(at(b, list), at(b, count), 0, blocks))
}

// products are independent matrix products whose blocks have 128 threads and 64 in turns.
type products struct {
	a, b []float32
	c    [][]float32
}

func newProducts() *products {
	p := &products{a: normals("a", 200*130), b: normals("b", 140*130)}
	for range 6 {
		p.c = append(p.c, make([]float32, 200*140))
	}
	return p
}

func (p *products) calls(h *fixture) (all []kernels.Call) {
	for i, c := range p.c {
		all = append(all, kernels.Gemm{Agents: 1, M: 200, N: 140, K: 130, Form: "nt",
			A: kernels.Operand{At: at(h, p.a)}, B: kernels.Operand{At: at(h, p.b)}, C: kernels.Operand{At: at(h, c)},
			TF32: i%2 == 0}.Call())
	}
	return all
}

// megakernelSizes compares calls of one phase, with blocks of different sizes and more of them than
// have a place at the same time, with separate launches: threads that begin a block must not write
// to the shared memory of one that others still compute.
func megakernelSizes(h *fixture) {
	want := newProducts()
	h.run(want.calls(h)...)
	for blocks := 1; blocks <= listBlocks; blocks++ {
		got := newProducts()
		h.runList(blocks, [][]kernels.Call{got.calls(h)})
		for i := range got.c {
			sameBits(h, fmt.Sprintf("product %d in a megakernel of %d blocks", i, blocks), got.c[i], want.c[i])
		}
	}
}
