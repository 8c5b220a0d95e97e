package kernels_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/nvrtc"
	"fspda/internal/testing/ptxas"
)

// machineCode is the instructions of a kernel, 16 bytes each since sm_70. The low 12 bits of an
// instruction are the opcode, and bits 73 to 75 the width of a memory access.
type machineCode []byte

const (
	loadGlobal70, storeGlobal70 = 0x381, 0x386 // sm_70
	loadGlobal80, storeGlobal80 = 0x981, 0x986 // sm_80 and newer
	loadLocal, storeLocal       = 0x983, 0x387
	branch, barrier             = 0x947, 0xb1d
	fusedMultiplyAdd            = 0x223
	loadShared                  = 0x984
	integerToFloat              = 0x306

	double = 5 // 64 bits
	wide   = 6 // 128 bits
	ofByte = 0 // a conversion's operand; 2 is 32 bits, as in a division of integers
)

// machineCodes returns the kernels of a cubin.
func machineCodes(t *testing.T, cubin []byte) map[string]machineCode {
	t.Helper()
	cubin = bytes.Clone(cubin)
	copy(cubin[20:], []byte{1, 0, 0, 0}) // older compilers write a different ELF version
	f, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]machineCode{}
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".text."); ok {
			if all[name], err = s.Data(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// accesses counts the memory accesses of a kernel.
type accesses struct {
	loads, stores int // accesses of 128 bits
	local         int // accesses to local memory
	sequence      int // the longest run of 128-bit loads without a store, a barrier or a branch
}

func (c machineCode) accesses() (a accesses) {
	run := 0
	for at := 0; at+16 <= len(c); at += 16 {
		what := binary.LittleEndian.Uint64(c[at:]) & 0xfff
		width := binary.LittleEndian.Uint64(c[at+8:]) >> 9 & 7
		switch {
		case what == loadLocal || what == storeLocal:
			a.local++
		case (what == loadGlobal70 || what == loadGlobal80) && width == wide:
			a.loads++
			run++
			a.sequence = max(a.sequence, run)
		case what == storeGlobal70 || what == storeGlobal80:
			if run = 0; width == wide {
				a.stores++
			}
		case what == branch || what == barrier:
			run = 0
		}
	}
	return a
}

// resident returns how many threads of a kernel with 256 threads per block run on a multiprocessor,
// which has 65,536 registers, 2,048 threads and, for these kernels, enough shared memory.
func resident(u ptxas.Usage) int {
	each := (u.Registers + 7) / 8 * 8 // allocation granularity
	return min(2048, 65536/(256*each)*256)
}

// streams lists the memory-bound kernels, and whether they write matrices. They must keep memory
// busy: by Little's law, 3.35 TB/s (H100) at a latency of about 700 ns need 18 KB in flight on each
// of 132 multiprocessors, and half as much again while some threads compute.
var streams = map[string]bool{
	"norm_moments": false, "norm_apply": true, "norm_apply_two": true, "norm_grad_sums": true, "norm_grad_apply": true,
	"max_pool": true, "max_pool_norm": true, "max_pool_grad": true,
	"narrow": true, "widen": true, "narrow_segments": true, "finish_gradient": true,
}

const minInFlight = 28 << 10 // bytes per multiprocessor

// checkStreams checks that memory-bound kernels use 128-bit accesses, have enough bytes in flight,
// and do not use local memory.
func checkStreams(t *testing.T, made map[string]nvrtc.Binary) {
	t.Helper()
	found := 0
	for unit, b := range made {
		uses := ptxas.UsageOf(b.Log)
		for name, code := range machineCodes(t, b.Cubin) {
			cut := max(0, strings.LastIndexByte(name, '_'))
			writes, ok := streams[name[:cut]]
			if !ok || !slices.Contains([]string{"_f32", "_f16", "_bf16"}, name[cut:]) {
				continue
			}
			found++
			a, u := code.accesses(), uses[name]
			inFlight := resident(u) * a.sequence * 16
			t.Logf("%-24s %3d registers, %4d threads resident, %3d loads and %3d stores of "+
				"128 bits, %2d in sequence: %3d KB in flight", name, u.Registers, resident(u),
				a.loads, a.stores, a.sequence, inFlight>>10)
			if inFlight < minInFlight || writes && a.stores == 0 || a.local > 0 || u.Spilled > 0 {
				t.Errorf("%s of %s: %+v, %+v: %d bytes in flight, want at least %d, stores of "+
					"128 bits, and no local memory", name, unit, a, u, inFlight, minInFlight)
			}
		}
	}
	if found < 2*len(streams) {
		t.Errorf("%d kernels were checked, want at least two for each of %d names", found, len(streams))
	}
}

// checkLoads checks the products of stored bytes: bytes are loaded 8 at a time and the other factor
// 4 numbers at a time, and nothing converts a byte between its load and the next barrier, behind
// which the products of the tile before lie. A conversion would wait there for the load.
func checkLoads(t *testing.T, made map[string]nvrtc.Binary) {
	t.Helper()
	codes := machineCodes(t, made["gemm.cu"].Cubin)
	// the operands whose address comes from a list: a load of 8 bytes too
	for name, lists := range map[string]int{"gemm_nt_bytes": 3, "gemm_tn_bytes": 3, "gemm_nt_bytes_tf32": 3,
		"gemm_tn_bytes_tf32": 3, "gemm_nt_bytes_parts": 1, "gemm_tn_bytes_wide": 3} {
		code, ok := codes[name]
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		bytes, exposed, products, loading := -lists, 0, 0, false
		for at := 0; at+16 <= len(code); at += 16 {
			what := binary.LittleEndian.Uint64(code[at:]) & 0xfff
			high := binary.LittleEndian.Uint64(code[at+8:])
			width, operand := high>>9&7, high>>20&3
			switch {
			case (what == loadGlobal70 || what == loadGlobal80) && width == double:
				bytes, loading = bytes+1, true
			case what == barrier:
				loading = false
			case what == integerToFloat && operand == ofByte && loading:
				exposed++
			case what == fusedMultiplyAdd:
				products++
			}
		}
		a := code.accesses()
		t.Logf("%-20s %5d instructions, %3d multiply-adds, %d loads of 8 bytes and %d of 16, %d conversions before a "+
			"barrier", name, len(code)/16, products, bytes, a.loads, exposed)
		if bytes < 2 || a.loads < 4 || exposed > 0 || a.local > 0 {
			t.Errorf("%s: %d loads of 8 bytes and %d of 16 (first tile and next), %d conversions that wait for "+
				"a load, %d accesses to local memory; want at least 2 and 4, and none", name, bytes, a.loads, exposed,
				a.local)
		}
	}
}

// wideLoops is the most instructions that a thread issues in wide products for eight products of
// its elements, with the loads in front of the loop, and how many of them load from shared memory:
// the model of an iteration counts them (fspda/cuda/iteration_model_test.go).
var wideLoops = map[string]struct{ all, products, shared int }{
	"gemm_nt_bytes_parts": {284, 8 * 28, 33}, // 4 + 7 loads of four numbers each for four products
	"gemm_tn_bytes_wide":  {512, 8 * 56, 45}, // 2 + 3 loads for a product
}

// checkWide checks the loop of wide products, which the compiler unrolls.
func checkWide(t *testing.T, made map[string]nvrtc.Binary) {
	t.Helper()
	codes := machineCodes(t, made["gemm.cu"].Cubin)
	for name, want := range wideLoops {
		loop, products, shared := longestLoop(codes[name])
		t.Logf("%s: a loop of %d instructions, %d multiply-adds and %d loads from shared memory", name, loop, products,
			shared)
		if products != want.products || shared > want.shared || loop > want.all {
			t.Errorf("%s: a loop of %d instructions with %d multiply-adds and %d loads from shared memory; want %d "+
				"multiply-adds, and at most %d and %d", name, loop, products, shared, want.products, want.all,
				want.shared)
		}
	}
}

// exactLoops is the most instructions of the loops of products with exact factors, for a step of
// 39 products on tensor cores each: the model of an iteration counts them.
var exactLoops = map[string]int{"gemm_nt_bytes_mma": 235, "gemm_tn_bytes_mma": 290}

// checkExact checks these loops: GPUs below sm_80 have none.
func checkExact(t *testing.T, made map[string]nvrtc.Binary, arch string) {
	t.Helper()
	if arch == "sm_70" {
		return
	}
	codes := machineCodes(t, made["gemm_bytes.cu"].Cubin)
	for name, most := range exactLoops {
		code, loop, products := codes[name], 0, 0
		for at := range len(code) / 16 {
			if code.opcode(at) != branch || code.target(at, arch) > at {
				continue
			}
			first, n := code.target(at, arch), 0
			for i := first; i <= at; i++ {
				if code.opcode(i) == matrixMultiplyAdd {
					n++
				}
			}
			if n > products {
				loop, products = at+1-first, n
			}
		}
		t.Logf("%s: a loop of %d instructions and %d products on tensor cores, of %d instructions", name, loop,
			products, len(code)/16)
		if products != 39 || loop > most || code.accesses().local > 0 {
			t.Errorf("%s: a loop of %d instructions with %d products on tensor cores, %d accesses to local memory; "+
				"want at most %d with 39, and none", name, loop, products, code.accesses().local, most)
		}
	}
}

// longestLoop counts the instructions, multiply-adds and loads from shared memory between two
// branches or barriers, where the multiply-adds are most.
func longestLoop(code machineCode) (all, products, shared int) {
	var n, p, l int
	for at := 0; at+16 <= len(code); at += 16 {
		switch binary.LittleEndian.Uint64(code[at:]) & 0xfff {
		case branch, barrier:
			if p > products {
				all, products, shared = n, p, l
			}
			n, p, l = 0, 0, 0
			continue
		case fusedMultiplyAdd:
			p++
		case loadShared:
			l++
		}
		n++
	}
	return all, products, shared
}

// productKernels lists the products whose factors are float32, TF32 or bytes, with the most
// instructions that a thread issues for a multiply-add in the loop over a tile: 0 on tensor cores,
// where sm_70 has another loop. NVRTC 12.9 makes 1.15 to 1.18.
var productKernels = map[string]float64{
	"gemm_nt_32": 1.25, "gemm_nn_32": 1.25, "gemm_tn_32": 1.25, "gemm_nt_64": 1.25, "gemm_nn_64": 1.25,
	"gemm_tn_64": 1.25, "gemm_nt_bytes": 1.25, "gemm_tn_bytes": 1.25, "gemm_nt_bytes_parts": 1.28,
	"gemm_tn_bytes_wide": 1.2, "gemm_nt_tf32": 0, "gemm_nn_tf32": 0, "gemm_tn_tf32": 0, "gemm_nt_bytes_tf32": 0,
	"gemm_tn_bytes_tf32": 0,
}

// checkOverlap checks that products load the next tile while they multiply: of the 16-byte loads,
// as many as the first tile has are in flight during all multiply-adds, and of the 8-byte loads of
// a factor of bytes at least one. It also bounds the instructions of the loop.
func checkOverlap(t *testing.T, made map[string]nvrtc.Binary, arch string) {
	t.Helper()
	codes := machineCodes(t, made["gemm.cu"].Cubin)
	for name, most := range productKernels {
		code, ok := codes[name]
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		products, covered, exposed := code.count(isProduct), map[uint64]int{}, map[uint64]int{}
		last := 0 // multiply-add; loads behind it are of an epilogue
		for at := range len(code) / 16 {
			if isProduct(code.opcode(at)) {
				last = at
			}
		}
		for at := range last {
			what, width := code.opcode(at), code.high(at)>>9&7
			if (what != loadGlobal70 && what != loadGlobal80) || width < double {
				continue
			}
			if n := code.productsInFlight(at, arch); n == products {
				covered[width]++
			} else {
				exposed[width]++
			}
		}
		loop, inLoop, _ := longestLoop(code)
		issued := float64(loop) / float64(max(inLoop, 1))
		t.Logf("%-26s %4d instructions, %3d multiply-adds, %.2f instructions each in the loop; loads of 16 bytes: %d "+
			"in flight during all, %d not; of 8 bytes: %d and %d", name, len(code)/16, products, issued, covered[wide],
			exposed[wide], covered[double], exposed[double])
		bytes := strings.Contains(name, "bytes")
		if products == 0 || covered[wide] == 0 || covered[wide] < exposed[wide] || bytes && covered[double] == 0 ||
			most > 0 && issued > most {
			t.Errorf("%s: %d of %d loads of 16 bytes and %d of 8 are in flight during all %d multiply-adds, %.2f "+
				"instructions for each; want at least half, some (with bytes) and at most %v", name, covered[wide],
				covered[wide]+exposed[wide], covered[double], products, issued, most)
		}
	}
}

const (
	matrixMultiplyAdd = 0x23c
	exit              = 0x94d
	always            = 7 // the predicate of an instruction without a condition
)

func (c machineCode) opcode(at int) uint64 { return binary.LittleEndian.Uint64(c[16*at:]) & 0xfff }
func (c machineCode) low(at int) uint64    { return binary.LittleEndian.Uint64(c[16*at:]) }
func (c machineCode) high(at int) uint64   { return binary.LittleEndian.Uint64(c[16*at+8:]) }

func isProduct(opcode uint64) bool { return opcode == fusedMultiplyAdd || opcode == matrixMultiplyAdd }

func (c machineCode) count(of func(opcode uint64) bool) (n int) {
	for at := range len(c) / 16 {
		if of(c.opcode(at)) {
			n++
		}
	}
	return n
}

// productsInFlight returns how many multiply-adds can be issued after a load without waiting for
// it. A load names one of six scoreboards (bits 110 to 112), and an instruction those that it waits
// for (a bit each from 116 on).
func (c machineCode) productsInFlight(load int, arch string) (n int) {
	board := c.high(load) >> 46 & 7
	seen, next := map[int]bool{}, []int{load + 1}
	for len(next) > 0 {
		at := next[len(next)-1]
		next = next[:len(next)-1]
		if seen[at] || at < 0 || 16*at >= len(c) {
			continue
		}
		seen[at] = true
		low, high := c.low(at), c.high(at)
		if board < 6 && high>>52>>board&1 == 1 {
			continue
		}
		what, unconditional := low&0xfff, low>>12&15 == always
		switch {
		case isProduct(what):
			n++
		case what == branch:
			next = append(next, c.target(at, arch))
			unconditional = unconditional && high>>23&15 == always // its second condition
		}
		if !unconditional || what != branch && what != exit {
			next = append(next, at+1)
		}
	}
	return n
}

// target returns where a branch goes. The offset is in 4 bytes, from the next instruction: bits 34
// to 81, and on sm_90 eight lower bits from 16 on.
func (c machineCode) target(at int, arch string) int {
	low, high := c.low(at), c.high(at)
	offset := int64(high<<46|low>>34<<16) >> 16
	if arch == "sm_90" {
		offset = offset<<8 | int64(low>>16&0xff)
	}
	return at + 1 + int(offset/4)
}
