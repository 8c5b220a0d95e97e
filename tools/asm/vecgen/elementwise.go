package main

import (
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// simple is a kernel of float32 without state: vectors of the inputs in, vectors of the outputs
// out.
type simple struct {
	name    string
	doc     string
	out, in []string
	scalars []string
	held    []string // constants
	unroll  int
	ahead   int // how many numbers ahead it prefetches; 0: it leaves that to the processor
	body    func(e *emitter, in, scalars []reg.VecVirtual) []reg.VecVirtual
}

type vectors = []reg.VecVirtual

// adamWPrefetch is a page: a processor does not prefetch beyond the one that it reads.
const adamWPrefetch = 1024

var simples = []simple{
	{"add", "writes dst = a + b.", []string{"dst"}, []string{"a", "b"}, nil, nil, 4, 0,
		func(e *emitter, in, _ vectors) vectors {
			v := e.vector()
			e.asm.VADDPS(in[1], in[0], v)
			return vectors{v}
		}},
	{"relus", "writes dst = 0 where x <= 0, else x.", []string{"dst"}, []string{"x"}, nil, nil, 4, 0,
		func(e *emitter, in, _ vectors) vectors { return vectors{e.where(notLessEqual, in[0], in[0])} }},
	{"reluGrads", "writes dst = dy where y > 0, else 0.", []string{"dst"}, []string{"y", "dy"}, nil, nil, 4, 0,
		func(e *emitter, in, _ vectors) vectors { return vectors{e.where(greater, in[0], in[1])} }},
	{"sigmoidGrads", "writes dst = (dy·y)·(1-y).", []string{"dst"}, []string{"y", "dy"}, nil, []string{"float one"},
		4, 0,
		func(e *emitter, in, _ vectors) vectors {
			p, q := e.vector(), e.vector()
			e.asm.VMULPS(in[1], in[0], p)
			e.asm.VSUBPS(in[0], e.inRegister("float one"), q)
			e.asm.VMULPS(q, p, p)
			return vectors{p}
		}},
	{"addDiff1", "writes v += a·(p-q).", []string{"v"}, []string{"v", "p", "q"}, []string{"a"}, nil, 4, 0,
		func(e *emitter, in, s vectors) vectors {
			d := e.difference(in[1], in[2])
			return vectors{e.plusTimes(in[0], s[0], d)}
		}},
	{"addDiff2", "writes v += a·(p-q) and w += b·(p-q), with the old p and q.", []string{"v", "w"},
		[]string{"v", "w", "p", "q"},
		[]string{"a", "b"}, nil, 2, 0,
		func(e *emitter, in, s vectors) vectors {
			d := e.difference(in[2], in[3])
			return vectors{e.plusTimes(in[0], s[0], d), e.plusTimes(in[1], s[1], d)}
		}},
	{"adamW", "writes m = beta1·m + rest1·u, v = min(beta2·v + rest2·(u·u), most) and u = (scale1·m)/(scale2·√v + " +
		"eps) + decay·x, each operation rounded, with the old u.",
		[]string{"u", "m", "v"}, []string{"u", "m", "v", "x"},
		[]string{"beta1", "rest1", "beta2", "rest2", "scale1", "scale2", "eps", "decay", "most"}, nil, 1, adamWPrefetch,
		adamW},
}

// Comparisons with zero, as the immediate of VCMPPS: both quiet, the first true for NaN.
const (
	notLessEqual = 0x16
	greater      = 0x1e
)

// where returns v where the comparison of x with zero holds, else +0.
func (e *emitter) where(comparison uint8, x, v reg.VecVirtual) reg.VecVirtual {
	zero, w := e.zero(), e.vector()
	if e.isAVX512 {
		k := e.asm.K()
		e.asm.VCMPPS(operand.U8(comparison), zero, x, k)
		e.asm.VMOVAPS_Z(v, k, w)
		return w
	}
	e.asm.VCMPPS(operand.U8(comparison), zero, x, w)
	e.asm.VANDPS(v, w, w)
	return w
}

func adamW(e *emitter, in, s vectors) vectors {
	g, m, v, x := in[0], in[1], in[2], in[3]
	square := e.vector()
	e.asm.VMULPS(g, g, square)
	e.asm.VMULPS(s[1], g, g)
	e.asm.VMULPS(s[0], m, m)
	e.asm.VADDPS(g, m, m)
	e.asm.VMULPS(s[3], square, square)
	e.asm.VMULPS(s[2], v, v)
	e.asm.VADDPS(square, v, v)
	e.asm.VMINPS(v, s[8], v) // NaN stays NaN
	e.asm.VSQRTPS(v, square)
	e.asm.VMULPS(s[5], square, square)
	e.asm.VADDPS(s[6], square, square)
	e.asm.VMULPS(s[4], m, g)
	e.asm.VDIVPS(square, g, g)
	e.asm.VMULPS(s[7], x, x)
	e.asm.VADDPS(x, g, g)
	return vectors{g, m, v}
}

func (e *emitter) difference(p, q reg.VecVirtual) reg.VecVirtual {
	d := e.vector()
	e.asm.VSUBPS(q, p, d)
	return d
}

// plusTimes returns v + a·d, the product rounded first.
func (e *emitter) plusTimes(v, a, d reg.VecVirtual) reg.VecVirtual {
	p := e.vector()
	e.asm.VMULPS(d, a, p)
	e.asm.VADDPS(p, v, p)
	return p
}

// elementwise writes all simple kernels. All loads of a step come before its stores, since outputs
// may be inputs. Kernels whose outputs are not inputs are also written with non-temporal stores.
func elementwise(e *emitter) {
	for _, s := range simples {
		e.simple(s, false)
		if !slices.Contains(s.in, s.out[0]) {
			e.simple(s, true)
		}
	}
}

// pointers returns the names of the vectors, outputs first.
func (s simple) pointers() (names []string) {
	for _, name := range slices.Concat(s.out, s.in) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (s simple) signature() string {
	signature := "func(" + strings.Join(s.pointers(), ", ") + " *float32, n int"
	if len(s.scalars) > 0 {
		signature += ", " + strings.Join(s.scalars, ", ") + " float32"
	}
	return signature + ")"
}

// simple writes a kernel. One with non-temporal stores has one output and no scalars.
func (e *emitter) simple(s simple, stream bool) {
	name, doc := s.name, s.doc
	if stream {
		name += "Stream"
		doc = "is " + s.name + " with non-temporal stores. dst begins a cache line, and n is a positive multiple of 16."
	}
	e.begin(name, s.signature(), doc)
	base := map[string]reg.GPVirtual{}
	for _, name := range s.pointers() {
		base[name] = e.argument(name)
	}
	var scalars vectors
	for _, name := range s.scalars {
		scalars = append(scalars, e.broadcast(name))
	}
	e.hold(s.held...)
	outputs := func(l loop, p *part) vectors {
		if s.ahead > 0 && p == nil {
			for _, name := range s.in {
				l.asm.PREFETCHT0(l.of(base[name], s.ahead))
			}
		}
		var in vectors
		for _, name := range s.in {
			in = append(in, l.load(l.of(base[name], 0), p))
		}
		return s.body(l.emitter, in, scalars)
	}
	if stream {
		var read []reg.GPVirtual
		for _, name := range s.in {
			read = append(read, base[name])
		}
		e.lines("line", e.start(), e.argument("n"), read, func(l loop) {
			e.asm.VMOVNTPS(outputs(l, nil)[0], l.of(base[s.out[0]], 0))
		})
	} else {
		e.pass("pass", e.start(), e.argument("n"), e.lanes, s.unroll, each(func(l loop, p *part) {
			for i, v := range outputs(l, p) {
				e.store(v, l.of(base[s.out[i]], 0), p)
			}
		}))
	}
	e.end()
}
