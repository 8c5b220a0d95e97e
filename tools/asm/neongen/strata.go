package main

import "fspda/tools/asm/arm64"

var strataDeclaration = declaration{"drawNEON", "func(dst *uint32, groups int, state *uint64) (done int)",
	"draws from groups of 8 blocks, and stops at a group with a rejected draw. state points to lanes."}

// strataBlocks are the blocks of a group. One random number is for two of them.
const strataBlocks = 8

// sampler is the state of a loop: a register has the rests of two blocks, or the beginnings of four.
type sampler struct {
	*arm64.Func
	counter                           arm64.Reg
	constants                         [3]arm64.Reg // what splitmix64 adds and multiplies by
	part, short, groupPart, groupStep arm64.Reg
	rests                             [strataBlocks / 2]arm64.Reg
	begins                            [strataBlocks / 4]arm64.Reg
}

func newSampler(f *arm64.Func, state arm64.Reg) *sampler {
	s := &sampler{Func: f}
	field := func(i int) arm64.Reg {
		r := f.General()
		f.Set(r, "MOVD "+itoa(8*i)+"(R%r), R%d", state)
		return r
	}
	s.counter = field(0)
	for i, v := range []*arm64.Reg{&s.part, &s.short, &s.groupPart, &s.groupStep} {
		*v = f.Vector()
		f.Op([]string{"dup.x", "dup.w"}[i%2], *v, field(1+i))
	}
	for i := range s.rests {
		s.rests[i] = f.Vector()
		f.OpImm("ldur.q", 40+16*i, s.rests[i], state)
	}
	for i := range s.begins {
		s.begins[i] = f.Vector()
		f.OpImm("ldur.q", 40+8*strataBlocks+16*i, s.begins[i], state)
	}
	for i, v := range []string{"0x9e3779b97f4a7c15", "0xbf58476d1ce4e5b9", "0x94d049bb133111eb"} {
		s.constants[i] = f.General()
		f.Set(s.constants[i], "MOVD $"+v+", R%d")
	}
	return s
}

// draw computes random numbers in general registers, since vectors have no product of 64 bits, and
// the rest in vectors.
func draw(f *arm64.Func) {
	dst, groups := argument(f, "dst", 0), argument(f, "groups", 8)
	s := newSampler(f, argument(f, "state", 16))
	done := f.General()
	f.Set(done, "MOVD $0, R%d")
	f.Label("group")
	var out, rejected [2]arm64.Reg
	for i := range out {
		out[i], rejected[i] = s.four(i)
	}
	any, one := f.General(), f.Vector()
	f.Op("orr.16b", one, rejected[0], rejected[1])
	f.Op("umaxv", one, one)
	f.OpImm("umov.s", 0, any, one)
	f.JumpNonzero(any, "done")
	f.OpPair("stp.q", 0, out[0], out[1], dst)
	for i, b := range s.begins {
		f.Op("add.4s", b, b, s.groupStep)
		f.Op("sub.4s", b, b, s.carries(s.groupPart, func(h int) (from, to arm64.Reg) {
			return s.rests[2*i+h], s.rests[2*i+h]
		}))
	}
	increase(f, dst, 4*strataBlocks)
	increase(f, done, 1)
	f.Flags(groups, "SUBS $1, R%r, R%d", groups)
	f.Jump("NE", "group")
	f.Label("done")
	f.Do("MOVD R%r, done+24(FP)", done)
	f.Return()
}

// carries adds to the rests of four blocks, in two registers, and returns -1 where a sum exceeds 64
// bits.
func (s *sampler) carries(part arm64.Reg, rest func(h int) (from, to arm64.Reg)) arm64.Reg {
	over := vectors(s.Func, 2)
	for h := range over {
		from, to := rest(h)
		s.Op("add.2d", to, from, part)
		s.Op("cmhi.2d", over[h], part, to)
	}
	s.Op("uzp1.4s", over[0], over[0], over[1])
	return over[0]
}

// four returns the coordinates of four blocks, and where a number has to be drawn again.
func (s *sampler) four(i int) (out, rejected arm64.Reg) {
	u, length := s.Vector(), s.Vector()
	s.Op("fmov.d", u, s.splitmix())
	s.OpImm("ins.d", 1, u, s.splitmix())
	s.Op("sub.4s", length, s.short, s.carries(s.part, func(h int) (from, to arm64.Reg) {
		return s.rests[2*i+h], s.Vector()
	}))
	products, low := vectors(s.Func, 2), s.Vector()
	s.Op("umull", products[0], u, length)
	s.Op("umull2", products[1], u, length)
	out, rejected = s.Vector(), s.Vector()
	s.Op("uzp1.4s", low, products[0], products[1])
	s.Op("uzp2.4s", out, products[0], products[1])
	s.Op("add.4s", out, out, s.begins[i])
	s.Op("cmhi.4s", rejected, length, low)
	return out, rejected
}

// splitmix returns the next random number of the counter.
func (s *sampler) splitmix() arm64.Reg {
	r := s.General()
	s.Set(s.counter, "ADD R%r, R%r, R%d", s.constants[0], s.counter)
	s.Set(r, "EOR R%r>>30, R%r, R%d", s.counter, s.counter)
	s.Set(r, "MUL R%r, R%r, R%d", s.constants[1], r)
	s.Set(r, "EOR R%r>>27, R%r, R%d", r, r)
	s.Set(r, "MUL R%r, R%r, R%d", s.constants[2], r)
	s.Set(r, "EOR R%r>>31, R%r, R%d", r, r)
	return r
}
