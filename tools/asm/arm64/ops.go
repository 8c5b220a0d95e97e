package arm64

import (
	"fmt"
	"strings"
)

// fields are the numbers of an instruction: registers d, n and m, and an immediate operand i.
type fields map[byte]int

// op is an instruction on vectors: its bits without operands, and its name in a disassembly, where
// %d, %n, %m and %i are operands, %h is i in hexadecimal, %o the register behind n, and %e and
// %f those behind d.
type op struct {
	bits uint32
	text string
	// immediate returns the bits of the immediate operand, and whether it has an encoding
	immediate func(i int) (uint32, bool)
	keeps     bool // it reads the register that it sets
	store     bool // it writes memory: register d is read
	advances  bool // it also adds to its base
}

// scaled returns the encoding of a multiple of size below limit·size, from bit at on.
func scaled(size, limit, at int) func(int) (uint32, bool) {
	return func(i int) (uint32, bool) {
		return uint32(i/size) << at, i%size == 0 && i >= 0 && i/size < limit
	}
}

// signed returns the encoding of a multiple of size with a sign, in bits from bit at on.
func signed(size, bits, at int) func(int) (uint32, bool) {
	return func(i int) (uint32, bool) {
		half := 1 << (bits - 1)
		return uint32(i/size) & (1<<bits - 1) << at, i%size == 0 && i/size >= -half && i/size < half
	}
}

// lane returns the encoding of the index of a number among those of so many bytes.
func lane(size int) func(int) (uint32, bool) {
	return func(i int) (uint32, bool) { return uint32(2*i+1) * uint32(size) << 16, i >= 0 && i < 16/size }
}

// laneInMemory is that of a load or a store of one float32.
func laneInMemory(i int) (uint32, bool) { return uint32(i>>1)<<30 | uint32(i&1)<<12, i >= 0 && i < 4 }

// element is that of a multiplication by one float32 of a register.
func element(i int) (uint32, bool) { return uint32(i&1)<<21 | uint32(i>>1)<<11, i >= 0 && i < 4 }

// element16 is that of a multiplication by one number of 16 bits.
func element16(i int) (uint32, bool) {
	return uint32(i>>2&1)<<11 | uint32(i>>1&1)<<21 | uint32(i&1)<<20, i >= 0 && i < 8
}

func left(size int) func(int) (uint32, bool) {
	return func(i int) (uint32, bool) { return uint32(size+i) << 16, i >= 0 && i < size }
}

// longer is that of a shift of 16 bits to 32; without a shift the instruction has another name.
func longer(i int) (uint32, bool) { return uint32(16+i) << 16, i > 0 && i < 16 }

// left8 is that of a shift of 8 bits to 16.
func left8(i int) (uint32, bool) { return uint32(8+i) << 16, i > 0 && i < 8 }

func right(size int) func(int) (uint32, bool) {
	return func(i int) (uint32, bool) { return uint32(2*size-i) << 16, i > 0 && i <= size }
}

// byteOf is the encoding of a byte that fills a vector.
func byteOf(i int) (uint32, bool) { return uint32(i>>5)<<16 | uint32(i&31)<<5, i >= 0 && i < 256 }

func three(bits uint32, name, as string) op {
	return op{bits: bits, text: fmt.Sprintf("%s v%%d.%s, v%%n.%[2]s, v%%m.%[2]s", name, as)}
}

func two(bits uint32, name, to, from string) op {
	return op{bits: bits, text: fmt.Sprintf("%s v%%d.%s, v%%n.%s", name, to, from)}
}

// long multiplies four numbers of 16 bits by one of a register.
func long(bits uint32, name, from string) op {
	return op{bits: bits, text: fmt.Sprintf("%s v%%d.4s, v%%n.%s, v%%m.h[%%i]", name, from), immediate: element16}
}

func keeping(o op) op {
	o.keeps = true
	return o
}

func with(o op, operands string, immediate func(int) (uint32, bool)) op {
	o.text, o.immediate = o.text+operands, immediate
	return o
}

func load(bits uint32, text string, immediate func(int) (uint32, bool)) op {
	return op{bits: bits, text: text, immediate: immediate}
}

func store(bits uint32, text string, immediate func(int) (uint32, bool)) op {
	return op{bits: bits, text: text, immediate: immediate, store: true}
}

func advancing(o op) op {
	o.advances = true
	return o
}

// ops are the instructions, from the Arm Architecture Reference Manual.
var ops = map[string]op{
	"fadd.4s":  three(0x4e20d400, "fadd", "4s"),
	"fsub.4s":  three(0x4ea0d400, "fsub", "4s"),
	"fmul.4s":  three(0x6e20dc00, "fmul", "4s"),
	"fdiv.4s":  three(0x6e20fc00, "fdiv", "4s"),
	"fmla.4s":  keeping(three(0x4e20cc00, "fmla", "4s")),
	"fmls.4s":  keeping(three(0x4ea0cc00, "fmls", "4s")),
	"fcmgt.4s": three(0x6ea0e400, "fcmgt", "4s"),
	"fcmge.4s": three(0x6e20e400, "fcmge", "4s"),
	"fcmeq.4s": three(0x4e20e400, "fcmeq", "4s"),
	"fneg.4s":  two(0x6ea0f800, "fneg", "4s", "4s"),
	"fsqrt.4s": two(0x6ea1f800, "fsqrt", "4s", "4s"),
	"fadd.2d":  three(0x4e60d400, "fadd", "2d"),
	"fsub.2d":  three(0x4ee0d400, "fsub", "2d"),
	"fmul.2d":  three(0x6e60dc00, "fmul", "2d"),
	"fdiv.2d":  three(0x6e60fc00, "fdiv", "2d"),
	"fmla.2d":  keeping(three(0x4e60cc00, "fmla", "2d")),
	"fcmgt.2d": three(0x6ee0e400, "fcmgt", "2d"),
	"fmla.s":   keeping(op{bits: 0x4f801000, text: "fmla v%d.4s, v%n.4s, v%m.s[%i]", immediate: element}),
	"fmls.2d":  keeping(three(0x4ee0cc00, "fmls", "2d")),
	"fabd.2d":  three(0x6ee0d400, "fabd", "2d"),
	"fmax.2d":  three(0x4e60f400, "fmax", "2d"),
	"fabs.2d":  two(0x4ee0f800, "fabs", "2d", "2d"),
	// frintn rounds to the nearest integer, and halves to the even one.
	"frintn":   two(0x4e618800, "frintn", "2d", "2d"),
	"fcvtzs":   two(0x4ee1b800, "fcvtzs", "2d", "2d"),
	"fcvtl":    two(0x0e617800, "fcvtl", "2d", "2s"),
	"fcvtl2":   two(0x4e617800, "fcvtl2", "2d", "4s"),
	"fcvtn":    two(0x0e616800, "fcvtn", "2s", "2d"),
	"fcvtn2":   keeping(two(0x4e616800, "fcvtn2", "4s", "2d")),
	"scvtf.4s": two(0x4e21d800, "scvtf", "4s", "4s"),
	"and.16b":  three(0x4e201c00, "and", "16b"),
	"orr.16b":  three(0x4ea01c00, "orr", "16b"),
	"mov.16b":  two(0x4ea01c00, "mov", "16b", "16b"), // orr of the same register twice
	"eor.16b":  three(0x6e201c00, "eor", "16b"),
	"bsl.16b":  keeping(three(0x6e601c00, "bsl", "16b")),
	"bit.16b":  keeping(three(0x6ea01c00, "bit", "16b")),
	"bif.16b":  keeping(three(0x6ee01c00, "bif", "16b")),
	"mvn.16b":  two(0x6e205800, "mvn", "16b", "16b"),
	"add.4s":   three(0x4ea08400, "add", "4s"),
	"mul.4s":   three(0x4ea09c00, "mul", "4s"),
	"add.2d":   three(0x4ee08400, "add", "2d"),
	"sub.2d":   three(0x6ee08400, "sub", "2d"),
	"cmhi.4s":  three(0x6ea03400, "cmhi", "4s"),
	"cmhi.2d":  three(0x6ee03400, "cmhi", "2d"),
	"umull":    {bits: 0x2ea0c000, text: "umull v%d.2d, v%n.2s, v%m.2s"},
	"umull2":   {bits: 0x6ea0c000, text: "umull2 v%d.2d, v%n.4s, v%m.4s"},
	"umaxv":    {bits: 0x6eb0a800, text: "umaxv s%d, v%n.4s"},
	"uzp1.4s":  three(0x4e801800, "uzp1", "4s"),
	"uzp2.4s":  three(0x4e805800, "uzp2", "4s"),
	"zip1.4s":  three(0x4e803800, "zip1", "4s"),
	"zip2.4s":  three(0x4e807800, "zip2", "4s"),
	"zip1.2d":  three(0x4ec03800, "zip1", "2d"),
	"zip2.2d":  three(0x4ec07800, "zip2", "2d"),
	"zip1.16b": three(0x4e003800, "zip1", "16b"),
	"zip2.16b": three(0x4e007800, "zip2", "16b"),
	"uxtl.8h":  two(0x2f08a400, "uxtl", "8h", "8b"),
	"uxtl.4s":  two(0x2f10a400, "uxtl", "4s", "4h"),
	"uxtl2.4s": two(0x6f10a400, "uxtl2", "4s", "8h"),
	"sxtl.2d":  two(0x0f20a400, "sxtl", "2d", "2s"),
	"sxtl2.2d": two(0x4f20a400, "sxtl2", "2d", "4s"),
	"shl.4s":   with(two(0x4f005400, "shl", "4s", "4s"), ", #%i", left(32)),
	"ushr.4s":  with(two(0x6f000400, "ushr", "4s", "4s"), ", #%i", right(32)),
	"shl.2d":   with(two(0x4f005400, "shl", "2d", "2d"), ", #%i", left(64)),
	"ext.16b":  with(three(0x6e000000, "ext", "16b"), ", #%i", scaled(1, 16, 11)),
	"movi.16b": {bits: 0x4f00e400, text: "movi v%d.16b, #%h", immediate: byteOf},
	"dup.s":    {bits: 0x4e000400, text: "dup v%d.4s, v%n.s[%i]", immediate: lane(4)},
	"dup.d":    {bits: 0x4e000400, text: "dup v%d.2d, v%n.d[%i]", immediate: lane(8)},
	"dup.w":    {bits: 0x4e040c00, text: "dup v%d.4s, w%n"},
	"umov.s":   {bits: 0x0e003c00, text: "mov w%d, v%n.s[%i]", immediate: lane(4)},
	"umov.d":   {bits: 0x4e003c00, text: "mov x%d, v%n.d[%i]", immediate: lane(8)},
	"dup.x":    {bits: 0x4e080c00, text: "dup v%d.2d, x%n"},
	"fmov.d":   {bits: 0x9e670000, text: "fmov d%d, x%n"},
	"ins.d":    keeping(op{bits: 0x4e001c00, text: "mov v%d.d[%i], x%n", immediate: lane(8)}),
	"tbl":      {bits: 0x4e000000, text: "tbl v%d.16b, {v%n.16b}, v%m.16b"},
	// Two registers with adjacent numbers are a table of 32 bytes.
	"tbl2": {bits: 0x4e002000, text: "tbl v%d.16b, {v%n.16b, v%o.16b}, v%m.16b"},

	"add.8h":     three(0x4e608400, "add", "8h"),
	"sub.8h":     three(0x6e608400, "sub", "8h"),
	"mul.8h":     three(0x4e609c00, "mul", "8h"),
	"mla.8h":     keeping(three(0x4e609400, "mla", "8h")),
	"sshl.8h":    three(0x4e604400, "sshl", "8h"),
	"sqadd.8h":   three(0x4e600c00, "sqadd", "8h"),
	"sqrdmulh":   three(0x6e60b400, "sqrdmulh", "8h"),
	"sub.4s":     three(0x6ea08400, "sub", "4s"),
	"mla.4s":     keeping(three(0x4ea09400, "mla", "4s")),
	"mls.4s":     keeping(three(0x6ea09400, "mls", "4s")),
	"smull.h":    long(0x0f40a000, "smull", "4h"),
	"smull2.h":   long(0x4f40a000, "smull2", "8h"),
	"smlal.h":    keeping(long(0x0f402000, "smlal", "4h")),
	"smlal2.h":   keeping(long(0x4f402000, "smlal2", "8h")),
	"sshll.4s":   with(two(0x0f00a400, "sshll", "4s", "4h"), ", #%i", longer),
	"sshll2.4s":  with(two(0x4f00a400, "sshll2", "4s", "8h"), ", #%i", longer),
	"ushll.8h":   with(two(0x2f00a400, "ushll", "8h", "8b"), ", #%i", left8),
	"ushll2.8h":  with(two(0x6f00a400, "ushll2", "8h", "16b"), ", #%i", left8),
	"sqrshrun":   with(two(0x2f008c00, "sqrshrun", "8b", "8h"), ", #%i", right(8)),
	"sqrshrun2":  keeping(with(two(0x6f008c00, "sqrshrun2", "16b", "8h"), ", #%i", right(8))),
	"sshr.4s":    with(two(0x4f000400, "sshr", "4s", "4s"), ", #%i", right(32)),
	"sxtl.4s":    two(0x0f10a400, "sxtl", "4s", "4h"),
	"sxtl2.4s":   two(0x4f10a400, "sxtl2", "4s", "8h"),
	"sxtl.8h":    two(0x0f08a400, "sxtl", "8h", "8b"),
	"sxtl2.8h":   two(0x4f08a400, "sxtl2", "8h", "16b"),
	"uxtl2.8h":   two(0x6f08a400, "uxtl2", "8h", "16b"),
	"sqxtn.4h":   two(0x0e614800, "sqxtn", "4h", "4s"),
	"sqxtn2.8h":  keeping(two(0x4e614800, "sqxtn2", "8h", "4s")),
	"sqxtn.8b":   two(0x0e214800, "sqxtn", "8b", "8h"),
	"sqxtun.4h":  two(0x2e612800, "sqxtun", "4h", "4s"),
	"sqxtun2.8h": keeping(two(0x6e612800, "sqxtun2", "8h", "4s")),
	"uqxtn.8b":   two(0x2e214800, "uqxtn", "8b", "8h"),
	"uqxtn2.16b": keeping(two(0x6e214800, "uqxtn2", "16b", "8h")),
	"xtn.8b":     two(0x0e212800, "xtn", "8b", "8h"),
	"xtn2.16b":   keeping(two(0x4e212800, "xtn2", "16b", "8h")),
	"zip1.8h":    three(0x4e403800, "zip1", "8h"),
	"zip2.8h":    three(0x4e407800, "zip2", "8h"),
	"dup.wh":     {bits: 0x4e020c00, text: "dup v%d.8h, w%n"},
	// Registers with adjacent numbers are written in turn, number by number.
	"st2.16b": store(0x4c008000, "st2 {v%d.16b, v%e.16b}, [x%n]", nil),
	"st3.16b": store(0x4c004000, "st3 {v%d.16b-v%f.16b}, [x%n]", nil),

	"ldr.q":   load(0x3dc00000, "ldr q%d, [x%n,#%i]", scaled(16, 4096, 10)),
	"ldur.q":  load(0x3cc00000, "ldur q%d, [x%n,#%i]", signed(1, 9, 12)),
	"ldr.d":   load(0xfd400000, "ldr d%d, [x%n,#%i]", scaled(8, 4096, 10)),
	"ldur.d":  load(0xfc400000, "ldur d%d, [x%n,#%i]", signed(1, 9, 12)),
	"ldr.s":   load(0xbd400000, "ldr s%d, [x%n,#%i]", scaled(4, 4096, 10)),
	"ldur.s":  load(0xbc400000, "ldur s%d, [x%n,#%i]", signed(1, 9, 12)),
	"ldp.q":   load(0xad400000, "ldp q%d, q%m, [x%n,#%i]", signed(16, 7, 15)),
	"ld1.s":   keeping(load(0x0d408000, "ld1 {v%d.s}[%i], [x%n]", laneInMemory)),
	"ld1r.4s": load(0x4d40c800, "ld1r {v%d.4s}, [x%n]", nil),
	"ld1r.8h": load(0x4d40c400, "ld1r {v%d.8h}, [x%n]", nil),
	"ld1r.2d": load(0x4d40cc00, "ld1r {v%d.2d}, [x%n]", nil),
	"str.q":   store(0x3d800000, "str q%d, [x%n,#%i]", scaled(16, 4096, 10)),
	"stur.q":  store(0x3c800000, "stur q%d, [x%n,#%i]", signed(1, 9, 12)),
	"str.d":   store(0xfd000000, "str d%d, [x%n,#%i]", scaled(8, 4096, 10)),
	"stur.d":  store(0xfc000000, "stur d%d, [x%n,#%i]", signed(1, 9, 12)),
	"str.s":   store(0xbd000000, "str s%d, [x%n,#%i]", scaled(4, 4096, 10)),
	"stur.s":  store(0xbc000000, "stur s%d, [x%n,#%i]", signed(1, 9, 12)),
	"stp.q":   store(0xad000000, "stp q%d, q%m, [x%n,#%i]", signed(16, 7, 15)),
	"stnp.q":  store(0xac000000, "stnp q%d, q%m, [x%n,#%i]", signed(16, 7, 15)),
	"st1.s":   store(0x0d008000, "st1 {v%d.s}[%i], [x%n]", laneInMemory),

	"prfm": {bits: 0xf8a06800, text: "prfm pldl1keep, [x%n,x%m]"},

	"ldr.q+":   advancing(load(0x3cc00400, "ldr q%d, [x%n],#%i", signed(1, 9, 12))),
	"ldr.d+":   advancing(load(0xfc400400, "ldr d%d, [x%n],#%i", signed(1, 9, 12))),
	"ldp.q+":   advancing(load(0xacc00000, "ldp q%d, q%m, [x%n],#%i", signed(16, 7, 15))),
	"ld1r.4s+": advancing(load(0x4dc0c800, "ld1r {v%d.4s}, [x%n], x%m", nil)),
}

// word returns an instruction as Go's assembler takes it.
func word(name string, at fields) string {
	o := ops[name]
	bits := o.bits
	if strings.Contains(o.text, "%d") {
		bits |= uint32(at['d'])
	}
	if strings.Contains(o.text, "%n") {
		bits |= uint32(at['n']) << 5
	}
	if strings.Contains(o.text, "%m") {
		shift := 16
		if strings.Contains(o.text, "q%m") { // the second register of a pair in memory
			shift = 10
		}
		bits |= uint32(at['m']) << shift
	}
	if strings.Contains(o.text, "m.h[") && at['m'] >= 16 {
		panic(fmt.Sprintf("arm64: %s of number %d", name, at['m']))
	}
	if name == "mov.16b" {
		bits |= uint32(at['n']) << 16
	}
	if o.immediate != nil {
		more, ok := o.immediate(at['i'])
		if !ok {
			panic(fmt.Sprintf("arm64: %s has no encoding of %d", name, at['i']))
		}
		bits |= more
	}
	text := o.text
	for _, k := range "dnmi" {
		text = strings.ReplaceAll(text, "%"+string(k), fmt.Sprint(at[byte(k)]))
	}
	text = strings.ReplaceAll(text, "%h", fmt.Sprintf("%#x", at['i']))
	for k, n := range map[string]int{"%o": at['n'] + 1, "%e": at['d'] + 1, "%f": at['d'] + 2} {
		text = strings.ReplaceAll(text, k, fmt.Sprint(n%32))
	}
	return fmt.Sprintf("WORD $0x%08x // %s", bits, strings.ReplaceAll(text, ",#0]", "]"))
}

// encodes reports whether an immediate operand has an encoding.
func encodes(name string, i int) bool {
	_, ok := ops[name].immediate(i)
	return ok
}
