package main

import (
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// simple is a kernel of float32 without state: vectors of the inputs in, vectors of the outputs out.
type simple struct {
	name    string
	doc     string
	out, in []string
	scalars []string
	held    []string // constants
	unroll  int
	body    func(e *emitter, in, scalars []reg.VecVirtual) []reg.VecVirtual
}

type vectors = []reg.VecVirtual

var simples = []simple{
	{"add", "writes dst = a + b.", []string{"dst"}, []string{"a", "b"}, nil, nil, 4,
		func(e *emitter, in, _ vectors) vectors {
			v := e.vector()
			e.asm.VADDPS(in[1], in[0], v)
			return vectors{v}
		}},
	{"relus", "writes dst = 0 where x <= 0, else x.", []string{"dst"}, []string{"x"}, nil, nil, 4,
		func(e *emitter, in, _ vectors) vectors { return vectors{e.where(notLessEqual, in[0], in[0])} }},
	{"reluGrads", "writes dst = dy where y > 0, else 0.", []string{"dst"}, []string{"y", "dy"}, nil, nil, 4,
		func(e *emitter, in, _ vectors) vectors { return vectors{e.where(greater, in[0], in[1])} }},
	{"sigmoidGrads", "writes dst = (dy·y)·(1-y).", []string{"dst"}, []string{"y", "dy"}, nil, []string{"float one"}, 4,
		func(e *emitter, in, _ vectors) vectors {
			p, q := e.vector(), e.vector()
			e.asm.VMULPS(in[1], in[0], p)
			e.asm.VSUBPS(in[0], e.inRegister("float one"), q)
			e.asm.VMULPS(q, p, p)
			return vectors{p}
		}},
	{"addDiff1", "writes v += a·(p-q).", []string{"v"}, []string{"v", "p", "q"}, []string{"a"}, nil, 4,
		func(e *emitter, in, s vectors) vectors {
			d := e.difference(in[1], in[2])
			return vectors{e.plusTimes(in[0], s[0], d)}
		}},
	{"addDiff2", "writes v += a·(p-q) and w += b·(p-q), with the p and q of before.", []string{"v", "w"}, []string{"v", "w", "p", "q"},
		[]string{"a", "b"}, nil, 2,
		func(e *emitter, in, s vectors) vectors {
			d := e.difference(in[2], in[3])
			return vectors{e.plusTimes(in[0], s[0], d), e.plusTimes(in[1], s[1], d)}
		}},
}

// Comparisons with zero, as the immediate of VCMPPS: both quiet, the first true for NaN.
const (
	notLessEqual = 0x16
	greater      = 0x1e
)

// where returns v where x compares with zero as asked, else +0.
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

// elementwise writes all simple kernels. All loads of a step come before its stores: outputs may be inputs.
func elementwise(e *emitter) {
	for _, s := range simples {
		var pointers []string
		for _, name := range append(s.out, s.in...) {
			if !strings.Contains(strings.Join(pointers, " ")+" ", name+" ") {
				pointers = append(pointers, name)
			}
		}
		signature := "func(" + strings.Join(pointers, ", ") + " *float32, n int"
		if len(s.scalars) > 0 {
			signature += ", " + strings.Join(s.scalars, ", ") + " float32"
		}
		e.begin(s.name, signature+")", s.doc)
		e.simple(s, pointers)
		e.end()
	}
}

func (e *emitter) simple(s simple, pointers []string) {
	base := map[string]reg.GPVirtual{}
	for _, name := range pointers {
		base[name] = e.argument(name)
	}
	var scalars vectors
	for _, name := range s.scalars {
		scalars = append(scalars, e.broadcast(name))
	}
	e.hold(s.held...)
	e.pass("pass", e.start(), e.argument("n"), e.lanes, s.unroll, each(func(l loop, p *part) {
		var in vectors
		for _, name := range s.in {
			in = append(in, e.load(l.of(base[name], 0), p))
		}
		for i, v := range s.body(e, in, scalars) {
			e.store(v, l.of(base[s.out[i]], 0), p)
		}
	}))
}
