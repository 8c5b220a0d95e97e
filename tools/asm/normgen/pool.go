package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"fspda/tools/asm/asmgen"
)

// pooling is a kernel over contiguous pixels, and over the channels of each: in groups of vectors,
// which do not depend on each other, then in single ones. For each of these it reads rows×cols
// vectors of other images, one pixel apart in a row and rowStride numbers from row to row, and
// counts their indices.
type pooling struct {
	code
	sources    []string // parameters: images that are read
	stream     bool     // non-temporal stores
	prefetches bool     // prefetches the first source

	offset, size reg.GPVirtual // of the vector within a pixel, and of a pixel, in bytes
	index        reg.VecVirtual

	before func(p *pooling, from []operand.Mem, vectors int, masked bool)
	look   func(p *pooling, from []operand.Mem, vectors int, masked bool)
	after  func(p *pooling, vectors int, masked bool)
}

// windowArgs are the parameters of every pooling.
const windowArgs = "pixels, channels, rows, cols, rowStride int, firstIndex, colStep, rowStep float32"

// prefetched is the name of the pointer for prefetches.
const prefetched = "~"

// write writes a pooling whose sources move by sourceStep from pixel to pixel, and its outputs by
// outputStep. An empty name stands for one pixel.
func (p *pooling) write(outputs map[string]reg.GPVirtual, sourceStep, outputStep string) {
	pixels := p.pointer("pixels")
	p.size = p.bytes("channels")
	base := map[string]reg.GPVirtual{}
	for _, s := range p.sources {
		base[s] = p.pointer(s)
	}
	if p.prefetches {
		base[prefetched] = p.bytes("ahead")
		p.asm.ADDQ(base[p.sources[0]], base[prefetched])
	}
	for _, o := range sorted(outputs) {
		outputs[o] = p.pointer(o)
	}
	p.offset = p.asm.GP64()
	p.asm.Label("pixels")
	p.asm.XORQ(p.offset, p.offset)
	p.asm.Label("vectors")
	left := p.asm.GP64()
	p.asm.MOVQ(p.size, left)
	p.asm.SUBQ(p.offset, left)
	p.asm.CMPQ(left, operand.U32(uint32(p.wide*p.lanes*floatSize)))
	p.asm.JLT(operand.LabelRef("single"))
	p.group("", base, p.wide, false)
	p.asm.JMP(operand.LabelRef("vectors"))
	p.asm.Label("single")
	p.asm.CMPQ(left, operand.U8(p.lanes*floatSize))
	p.asm.JLT(operand.LabelRef("tail"))
	p.group("Single", base, 1, false)
	p.asm.JMP(operand.LabelRef("vectors"))
	p.asm.Label("tail")
	p.asm.SHRQ(operand.U8(2), left)
	p.asm.JZ(operand.LabelRef("next"))
	p.lastMask(left)
	p.group("Tail", base, 1, true)
	p.asm.Label("next")
	for _, s := range sorted(base) {
		p.move(base[s], sourceStep)
	}
	for _, o := range sorted(outputs) {
		p.move(outputs[o], outputStep)
	}
	p.asm.DECQ(pixels)
	p.asm.JNZ(operand.LabelRef("pixels"))
	asmgen.End(p.asm)
}

// move advances a pointer by a parameter, or by a pixel.
func (p *pooling) move(pointer reg.GPVirtual, step string) {
	if step == "" {
		p.asm.ADDQ(p.size, pointer)
		return
	}
	by := p.pointer(step)
	p.asm.LEAQ(operand.Mem{Base: pointer, Index: by, Scale: floatSize}, pointer)
}

// group computes some vectors of a pixel.
func (p *pooling) group(suffix string, base map[string]reg.GPVirtual, vectors int, masked bool) {
	p.index = p.new()
	across, down := p.new(), p.new()
	p.asm.VBROADCASTSS(p.address("firstIndex"), p.index)
	p.asm.VBROADCASTSS(p.address("colStep"), across)
	p.asm.VBROADCASTSS(p.address("rowStep"), down)
	row, at := p.asm.GP64(), p.asm.GP64() // in all sources
	p.asm.MOVQ(p.offset, row)
	var from []operand.Mem
	for _, s := range p.sources {
		from = append(from, operand.Mem{Base: base[s], Index: at, Scale: 1})
	}
	p.asm.MOVQ(row, at)
	p.before(p, from, vectors, masked)
	rows, cols := p.pointer("rows"), p.asm.GP64()
	p.asm.Label("rows" + suffix)
	p.asm.MOVQ(row, at)
	p.asm.Load(p.asm.Param("cols"), cols)
	p.asm.Label("cols" + suffix)
	for v := 0; p.prefetches && v < vectors; v++ {
		p.asm.PREFETCHT0(p.next(operand.Mem{Base: base[prefetched], Index: at, Scale: 1}, v))
	}
	p.look(p, from, vectors, masked)
	p.asm.VADDPS(across, p.index, p.index)
	p.asm.ADDQ(p.size, at)
	p.asm.DECQ(cols)
	p.asm.JNZ(operand.LabelRef("cols" + suffix))
	p.asm.VADDPS(down, p.index, p.index)
	p.move(row, "rowStride")
	p.asm.DECQ(rows)
	p.asm.JNZ(operand.LabelRef("rows" + suffix))
	p.after(p, vectors, masked)
	p.asm.ADDQ(operand.U32(uint32(vectors*p.lanes*floatSize)), p.offset)
}

// output returns the operand of vector v of a pixel.
func (p *pooling) output(base reg.GPVirtual, v int) operand.Mem {
	return operand.Mem{Base: base, Index: p.offset, Scale: 1, Disp: v * p.lanes * floatSize}
}

// next returns the operand of vector v behind the first.
func (p *pooling) next(from operand.Mem, v int) operand.Mem {
	return from.Offset(v * p.lanes * floatSize)
}

// maxPool writes the maxima of windows. A number replaces the maximum so far if it is larger or a
// NaN, and nothing replaces a NaN.
func maxPool(c *build.Context, s set) {
	outputs := map[string]reg.GPVirtual{"y": nil, "at": nil}
	var best, at []reg.VecVirtual
	p := &pooling{
		code: code{asm: c, set: s}, sources: []string{"x"}, prefetches: true,
		before: func(p *pooling, from []operand.Mem, vectors int, masked bool) {
			best, at = make([]reg.VecVirtual, vectors), make([]reg.VecVirtual, vectors)
			for v := range vectors {
				best[v], at[v] = p.load(p.next(from[0], v), masked), p.new()
				p.asm.VMOVAPS(p.index, at[v])
			}
		},
		look: func(p *pooling, from []operand.Mem, vectors int, masked bool) {
			for v := range vectors {
				p.lead(p.load(p.next(from[0], v), masked), best[v], at[v])
			}
		},
		after: func(p *pooling, vectors int, masked bool) {
			for v := range vectors {
				p.store(best[v], p.output(outputs["y"], v), masked)
				p.store(at[v], p.output(outputs["at"], v), masked)
			}
		},
	}
	begin(c, "maxPool"+s.name, "func("+windowArgs+", x *float32, step, ahead int, y, at *float32)",
		"writes the maxima of windows of rows×cols pixels, step numbers apart, and their indices, which count from "+
			"firstIndex: colStep more at every pixel of a row, and rowStep more at its end. All counts are at least "+
			"1. It prefetches so many numbers ahead.")
	p.write(outputs, "step", "")
}

// lead puts x and its index into best and at where it is the new maximum.
func (p *pooling) lead(x, best, at reg.VecVirtual) {
	if p.masked {
		number, larger := p.asm.K(), p.asm.K()
		p.asm.VCMPPS(ordered, best, best, number)
		p.asm.VCMPPS(notLE, best, x, larger)
		p.asm.KANDW(number, larger, larger)
		p.asm.VMOVAPS(x, larger, best)
		p.asm.VMOVAPS(p.index, larger, at)
		return
	}
	number, larger := p.new(), p.new()
	p.asm.VCMPPS(ordered, best, best, number)
	p.asm.VCMPPS(notLE, best, x, larger)
	p.asm.VANDPS(number, larger, larger)
	p.asm.VBLENDVPS(larger, x, best, best)
	p.asm.VBLENDVPS(larger, p.index, at, at)
}

// maxPoolGrad writes the sums of the gradients of a pixel, in float32, beginning with +0.
func maxPoolGrad(c *build.Context, s set, stream bool) {
	outputs := map[string]reg.GPVirtual{"dx": nil}
	var sum []reg.VecVirtual
	p := &pooling{
		code: code{asm: c, set: s}, sources: []string{"dy", "at"}, stream: stream,
		before: func(p *pooling, _ []operand.Mem, vectors int, _ bool) {
			sum = make([]reg.VecVirtual, vectors)
			for v := range sum {
				sum[v] = p.zero()
			}
		},
		look: func(p *pooling, from []operand.Mem, vectors int, masked bool) {
			for v := range vectors {
				p.addGradient(p.load(p.next(from[0], v), masked), p.load(p.next(from[1], v), masked), sum[v])
			}
		},
		after: func(p *pooling, vectors int, masked bool) {
			for v := range vectors {
				p.put(sum[v], p.output(outputs["dx"], v), masked, p.stream)
			}
		},
	}
	begin(c, "maxPoolGrad"+streamName(stream)+s.name, "func("+windowArgs+", dy, at, dx *float32, step int)",
		"adds for each pixel of dx, step numbers apart, the dy of rows×cols windows whose at is firstIndex for the "+
			"first window, colStep more at each window of a row, and rowStep more at its end. All counts are at "+
			"least 1."+streamDoc(stream))
	p.write(outputs, "", "step")
}

// addGradient adds dy where at is the current index.
func (p *pooling) addGradient(dy, at, sum reg.VecVirtual) {
	if p.masked {
		here := p.asm.K()
		p.asm.VCMPPS(equal, p.index, at, here)
		p.asm.VADDPS(dy, sum, here, sum)
		return
	}
	p.asm.VCMPPS(equal, p.index, at, at)
	p.asm.VANDPS(at, dy, dy)
	p.asm.VADDPS(dy, sum, sum) // the sum is never -0, so that adding +0 leaves its bits
}
