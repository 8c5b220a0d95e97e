package main

import "fspda/tools/asm/arm64"

var strataDeclaration = declaration{"strataNEON", "func(dst *uint32, groups int, lanes *uint64) (done int)",
	"draws from groups of 8 blocks, and stops at a group with a rejected draw. lanes points to strataLanes."}

// strataBlocks are the blocks of a group. One random number is for two of them.
const strataBlocks = 8

// strata computes random numbers in general registers, since vectors have no product of 64 bits, and
// the rest in vectors, where a register has the rests of two blocks or the beginnings of four.
func strata(f *arm64.Func) {
	dst, groups, lanes := argument(f, "dst", 0), argument(f, "groups", 8), argument(f, "lanes", 16)
	field := func(i int) arm64.Reg {
		r := f.General()
		f.Set(r, "MOVD "+itoa(8*i)+"(R%r), R%d", lanes)
		return r
	}
	counter := field(0)
	var values [4]arm64.Reg
	for i, dup := range []string{"dup.x", "dup.w", "dup.x", "dup.w"} {
		values[i] = f.Vector()
		f.Op(dup, values[i], field(1+i))
	}
	part, short, groupPart, groupStep := values[0], values[1], values[2], values[3]
	rests, begins := vectors(f, strataBlocks/2), vectors(f, strataBlocks/4)
	for i, v := range rests {
		f.OpImm("ldur.q", 40+16*i, v, lanes)
	}
	for i, v := range begins {
		f.OpImm("ldur.q", 40+8*strataBlocks+16*i, v, lanes)
	}
	var constants [3]arm64.Reg
	for i, v := range []string{"0x9e3779b97f4a7c15", "0xbf58476d1ce4e5b9", "0x94d049bb133111eb"} {
		constants[i] = f.General()
		f.Set(constants[i], "MOVD $"+v+", R%d")
	}
	done := f.General()
	f.Set(done, "MOVD $0, R%d")

	f.Label("group")
	rejected, out := f.Vector(), vectors(f, strataBlocks/4)
	for i := range out {
		u := f.Vector()
		for h := range 2 {
			r := splitmix(f, counter, constants)
			if h == 0 {
				f.Op("fmov.d", u, r)
			} else {
				f.OpImm("ins.d", 1, u, r)
			}
		}
		over, length := vectors(f, 2), f.Vector()
		for h := range over { // whether a block has one number more
			f.Op("add.2d", over[h], rests[2*i+h], part)
			f.Op("cmhi.2d", over[h], part, over[h])
		}
		f.Op("uzp1.4s", length, over[0], over[1])
		f.Op("sub.4s", length, short, length)
		products := vectors(f, 2)
		f.Op("umull", products[0], u, length)
		f.Op("umull2", products[1], u, length)
		low := f.Vector()
		f.Op("uzp1.4s", low, products[0], products[1])
		f.Op("uzp2.4s", out[i], products[0], products[1])
		f.Op("add.4s", out[i], out[i], begins[i])
		if i == 0 {
			f.Op("cmhi.4s", rejected, length, low)
		} else {
			f.Op("cmhi.4s", low, length, low)
			f.Op("orr.16b", rejected, rejected, low)
		}
	}
	any, one := f.General(), f.Vector()
	f.Op("umaxv", one, rejected)
	f.OpImm("umov.s", 0, any, one)
	f.JumpNonzero(any, "done")
	f.OpPair("stp.q", 0, out[0], out[1], dst)
	for i, b := range begins {
		over := vectors(f, 2)
		for h := range over {
			rest := rests[2*i+h]
			f.Op("add.2d", rest, rest, groupPart)
			f.Op("cmhi.2d", over[h], groupPart, rest)
		}
		f.Op("uzp1.4s", over[0], over[0], over[1])
		f.Op("add.4s", b, b, groupStep)
		f.Op("sub.4s", b, b, over[0])
	}
	increase(f, dst, 4*strataBlocks)
	increase(f, done, 1)
	f.Flags(groups, "SUBS $1, R%r, R%d", groups)
	f.Jump("NE", "group")
	f.Label("done")
	f.Do("MOVD R%r, done+24(FP)", done)
	f.Return()
}

// splitmix returns the next random number of a counter. The constants are what it adds and
// multiplies by.
func splitmix(f *arm64.Func, counter arm64.Reg, constants [3]arm64.Reg) arm64.Reg {
	r := f.General()
	f.Set(counter, "ADD R%r, R%r, R%d", constants[0], counter)
	f.Set(r, "EOR R%r>>30, R%r, R%d", counter, counter)
	f.Set(r, "MUL R%r, R%r, R%d", constants[1], r)
	f.Set(r, "EOR R%r>>27, R%r, R%d", r, r)
	f.Set(r, "MUL R%r, R%r, R%d", constants[2], r)
	f.Set(r, "EOR R%r>>31, R%r, R%d", r, r)
	return r
}
