package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pooling is a kernel over pixels side by side, and over the channels of each in groups of vectors, so that one need not wait for another,
// then in single ones. For each of these it looks at rows×cols vectors of other images, one pixel apart in a row and line numbers from row to row, and counts the number of what it looks at.
type pooling struct {
	code
	sources []string // parameters: images that are looked at
	stream  bool     // outputs go past the cache
	asks    bool     // the cache is asked for what lies ahead numbers beyond the first source

	offset, size reg.GPVirtual // of the vector within a pixel, and of a pixel, in bytes
	index        reg.VecVirtual

	before func(p *pooling, from []operand.Mem, vectors int, masked bool)
	look   func(p *pooling, from []operand.Mem, vectors int, masked bool)
	after  func(p *pooling, vectors int, masked bool)
}

// windowArgs are the parameters of every pooling.
const windowArgs = "pixels, channels, rows, cols, line int, first, across, down float32"

// future is the name of the pointer to what will be looked at.
const future = "~"

// write writes a pooling whose sources move by sourceStep from pixel to pixel, and its outputs by outputStep. An empty name
// stands for one pixel.
func (p *pooling) write(outputs map[string]reg.GPVirtual, sourceStep, outputStep string) {
	pixels := p.pointer("pixels")
	p.size = p.bytes("channels")
	base := map[string]reg.GPVirtual{}
	for _, s := range p.sources {
		base[s] = p.pointer(s)
	}
	if p.asks {
		base[future] = p.bytes("ahead")
		p.ADDQ(base[p.sources[0]], base[future])
	}
	for _, o := range sorted(outputs) {
		outputs[o] = p.pointer(o)
	}
	p.offset = p.GP64()
	p.Label("pixels")
	p.XORQ(p.offset, p.offset)
	p.Label("vectors")
	left := p.GP64()
	p.MOVQ(p.size, left)
	p.SUBQ(p.offset, left)
	p.CMPQ(left, operand.U32(uint32(p.wide*p.lanes*floatSize)))
	p.JLT(operand.LabelRef("single"))
	p.group("", base, p.wide, false)
	p.JMP(operand.LabelRef("vectors"))
	p.Label("single")
	p.CMPQ(left, operand.U8(p.lanes*floatSize))
	p.JLT(operand.LabelRef("tail"))
	p.group("Single", base, 1, false)
	p.JMP(operand.LabelRef("vectors"))
	p.Label("tail")
	p.SHRQ(operand.U8(2), left)
	p.JZ(operand.LabelRef("next"))
	p.lastMask(left)
	p.group("Tail", base, 1, true)
	p.Label("next")
	for _, s := range sorted(base) {
		p.move(base[s], sourceStep)
	}
	for _, o := range sorted(outputs) {
		p.move(outputs[o], outputStep)
	}
	p.DECQ(pixels)
	p.JNZ(operand.LabelRef("pixels"))
	p.VZEROUPPER()
	p.RET()
}

// move moves a pointer by a parameter, or by a pixel.
func (p *pooling) move(pointer reg.GPVirtual, step string) {
	if step == "" {
		p.ADDQ(p.size, pointer)
		return
	}
	by := p.pointer(step)
	p.LEAQ(operand.Mem{Base: pointer, Index: by, Scale: floatSize}, pointer)
}

// group does some vectors of a pixel.
func (p *pooling) group(suffix string, base map[string]reg.GPVirtual, vectors int, masked bool) {
	p.index = p.new()
	across, down := p.new(), p.new()
	p.VBROADCASTSS(p.address("first"), p.index)
	p.VBROADCASTSS(p.address("across"), across)
	p.VBROADCASTSS(p.address("down"), down)
	row, at := p.GP64(), p.GP64() // within all sources
	p.MOVQ(p.offset, row)
	var from []operand.Mem
	for _, s := range p.sources {
		from = append(from, operand.Mem{Base: base[s], Index: at, Scale: 1})
	}
	p.MOVQ(row, at)
	p.before(p, from, vectors, masked)
	rows, cols := p.pointer("rows"), p.GP64()
	p.Label("rows" + suffix)
	p.MOVQ(row, at)
	p.Load(p.Param("cols"), cols)
	p.Label("cols" + suffix)
	for v := 0; p.asks && v < vectors; v++ {
		p.PREFETCHT0(p.next(operand.Mem{Base: base[future], Index: at, Scale: 1}, v))
	}
	p.look(p, from, vectors, masked)
	p.VADDPS(across, p.index, p.index)
	p.ADDQ(p.size, at)
	p.DECQ(cols)
	p.JNZ(operand.LabelRef("cols" + suffix))
	p.VADDPS(down, p.index, p.index)
	p.move(row, "line")
	p.DECQ(rows)
	p.JNZ(operand.LabelRef("rows" + suffix))
	p.after(p, vectors, masked)
	p.ADDQ(operand.U32(uint32(vectors*p.lanes*floatSize)), p.offset)
}

// output is the place of vector v of a pixel.
func (p *pooling) output(base reg.GPVirtual, v int) operand.Mem {
	return operand.Mem{Base: base, Index: p.offset, Scale: 1, Disp: v * p.lanes * floatSize}
}

// next is the place of vector v behind the first.
func (p *pooling) next(from operand.Mem, v int) operand.Mem {
	return from.Offset(v * p.lanes * floatSize)
}

// maxPool writes the maxima of windows. A number replaces the best one so far if it is larger or a NaN, and nothing replaces a NaN.
func maxPool(c *build.Context, s set) {
	outputs := map[string]reg.GPVirtual{"y": nil, "at": nil}
	var best, at []reg.VecVirtual
	p := &pooling{
		code: code{Context: c, set: s}, sources: []string{"x"}, asks: true,
		before: func(p *pooling, from []operand.Mem, vectors int, masked bool) {
			best, at = make([]reg.VecVirtual, vectors), make([]reg.VecVirtual, vectors)
			for v := range vectors {
				best[v], at[v] = p.load(p.next(from[0], v), masked), p.new()
				p.VMOVAPS(p.index, at[v])
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
		"writes the maxima of windows of rows×cols pixels, step numbers apart, and their places.",
		"The places count from first: across more at every pixel of a row, and down more at its end. All counts are at least 1.",
		"It asks the cache for what lies ahead numbers further on.")
	p.write(outputs, "step", "")
}

// lead puts x, and its place, into best and at where it takes over.
func (p *pooling) lead(x, best, at reg.VecVirtual) {
	if p.masked {
		number, larger := p.K(), p.K()
		p.VCMPPS(ordered, best, best, number)
		p.VCMPPS(notLE, best, x, larger)
		p.KANDW(number, larger, larger)
		p.VMOVAPS(x, larger, best)
		p.VMOVAPS(p.index, larger, at)
		return
	}
	number, larger := p.new(), p.new()
	p.VCMPPS(ordered, best, best, number)
	p.VCMPPS(notLE, best, x, larger)
	p.VANDPS(number, larger, larger)
	p.VBLENDVPS(larger, x, best, best)
	p.VBLENDVPS(larger, p.index, at, at)
}

// maxPoolGrad writes the sums of what windows send to a pixel, in float32, from +0 on.
func maxPoolGrad(c *build.Context, s set, name string, stream bool) {
	outputs := map[string]reg.GPVirtual{"dx": nil}
	var sum []reg.VecVirtual
	p := &pooling{
		code: code{Context: c, set: s}, sources: []string{"dy", "at"}, stream: stream,
		before: func(p *pooling, _ []operand.Mem, vectors int, _ bool) {
			sum = make([]reg.VecVirtual, vectors)
			for v := range sum {
				sum[v] = p.zero()
			}
		},
		look: func(p *pooling, from []operand.Mem, vectors int, masked bool) {
			for v := range vectors {
				p.send(p.load(p.next(from[0], v), masked), p.load(p.next(from[1], v), masked), sum[v])
			}
		},
		after: func(p *pooling, vectors int, masked bool) {
			for v := range vectors {
				p.put(sum[v], p.output(outputs["dx"], v), masked, p.stream)
			}
		},
	}
	begin(c, name+s.name, "func("+windowArgs+", dy, at, dx *float32, step int)",
		"sums for pixels of dx, step numbers apart, what rows×cols windows send there: dy where at is",
		"first for the first window, across more at every window of a row, and down more at its end. All counts are at least 1."+streamDoc(stream))
	p.write(outputs, "", "step")
}

// send adds dy where at is the place that is looked at.
func (p *pooling) send(dy, at, sum reg.VecVirtual) {
	if p.masked {
		here := p.K()
		p.VCMPPS(equal, p.index, at, here)
		p.VADDPS(dy, sum, here, sum)
		return
	}
	p.VCMPPS(equal, p.index, at, at)
	p.VANDPS(at, dy, dy)
	p.VADDPS(dy, sum, sum) // the sum is never -0, so that adding +0 leaves its bits
}
