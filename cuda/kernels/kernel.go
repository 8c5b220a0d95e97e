package kernels

import (
	"fmt"
	"math"
	"strings"
)

// Address is an address in device memory. 0 stands for none, where a kernel allows that.
type Address uint64

// Region is bytes of the host and their address on a device.
type Region struct {
	At    Address
	Bytes []byte
}

// Kind is the type of a parameter.
type Kind byte

const (
	Pointer Kind = 'p' // 8 bytes
	Int32   Kind = 'i'
	Uint32  Kind = 'u'
	Int64   Kind = 'l'
	Uint64  Kind = 'U'
	Float32 Kind = 'f'
	Float64 Kind = 'd'
)

// Param is a parameter of a kernel.
type Param struct {
	Name string
	Kind Kind
}

// Kernel is a kernel function of a cubin.
type Kernel struct {
	Name   string
	Unit   string // source file: "vector.cu"
	Params []Param
	// MaxShared is the most bytes of dynamic shared memory of a launch, where they are more than the
	// driver permits without being asked.
	MaxShared int

	command int // number in megakernelCommands, from 1 on; 0: not in the megakernel
}

// Launch is the geometry of a launch: blocks, threads per block, bytes of dynamic shared memory.
type Launch struct {
	Grid, Block [3]uint32
	Shared      uint32
	Cooperative bool // blocks wait for each other: use a cooperative launch
}

// Call is a kernel with its arguments, one 64-bit slot per parameter, and geometry.
type Call struct {
	Kernel *Kernel
	Launch
	Args []uint64
}

// String returns the kernel, its geometry and its arguments, of many the first, for errors.
func (c Call) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s on a grid %v of blocks %v with %d bytes of shared memory:", c.Kernel.Name, c.Grid, c.Block,
		c.Shared)
	const most = 40
	for i, p := range c.Kernel.Params[:min(len(c.Kernel.Params), len(c.Args), most)] {
		fmt.Fprintf(&s, " %s %s", p.Name, p.Kind.format(c.Args[i]))
	}
	return s.String()
}

// format writes an argument: addresses in base 16.
func (k Kind) format(slot uint64) string {
	switch k {
	case Int32:
		return fmt.Sprint(int32(slot))
	case Uint32:
		return fmt.Sprint(uint32(slot))
	case Int64:
		return fmt.Sprint(int64(slot))
	case Float32:
		return fmt.Sprint(math.Float32frombits(uint32(slot)))
	case Float64:
		return fmt.Sprint(math.Float64frombits(slot))
	}
	return fmt.Sprintf("%#x", slot)
}

// Empty reports whether the grid has no blocks. The driver rejects such a launch.
func (c Call) Empty() bool { return c.Grid[0] == 0 || c.Grid[1] == 0 || c.Grid[2] == 0 }

// table maps names to kernels.
var table = map[string]*Kernel{}

// names lists the kernels in the order of definition.
var names []string

// All returns all kernels, unit by unit.
func All() []*Kernel {
	all := make([]*Kernel, len(names))
	for i, n := range names {
		all[i] = table[n]
	}
	return all
}

// define adds kernels of a unit to the table. A line has the name of a kernel and its parameters
// with their kinds: "gather dst:p src:p idx:p k:l".
func define(unit string, lines ...string) string {
	for _, line := range lines {
		fields := strings.Fields(line)
		k := &Kernel{Name: fields[0], Unit: unit}
		for _, f := range fields[1:] {
			name, kind, ok := strings.Cut(f, ":")
			if !ok || len(kind) != 1 {
				panic("kernels: parameter " + f + " of " + k.Name + ": want name:kind")
			}
			k.Params = append(k.Params, Param{name, Kind(kind[0])})
		}
		if table[k.Name] != nil {
			panic("kernels: duplicate kernel " + k.Name)
		}
		table[k.Name] = k
		names = append(names, k.Name)
	}
	return unit
}

// Kinds returns the kinds of the parameters as letters, in order.
func (k *Kernel) Kinds() string {
	var s strings.Builder
	for _, p := range k.Params {
		s.WriteByte(byte(p.Kind))
	}
	return s.String()
}

// call returns a call of a kernel. It panics if the arguments do not match the table, which is a
// bug of this package, or if a size exceeds its parameter's type.
func call(name string, l Launch, args ...any) Call {
	k := table[name]
	if k == nil || len(args) != len(k.Params) {
		panic(fmt.Sprintf("kernels: %s with %d parameters is not in the table", name, len(args)))
	}
	c := Call{Kernel: k, Launch: l, Args: make([]uint64, len(args))}
	for i, a := range args {
		c.Args[i] = slot(k, k.Params[i], a)
	}
	return c
}

func slot(k *Kernel, p Param, arg any) uint64 {
	switch v := arg.(type) {
	case Address:
		if p.Kind == Pointer {
			return uint64(v)
		}
	case int:
		switch {
		case p.Kind == Int64:
			return uint64(v)
		case p.Kind == Int32 && v == int(int32(v)), p.Kind == Uint32 && v == int(uint32(v)):
			return uint64(uint32(v))
		case p.Kind == Int32 || p.Kind == Uint32:
			panic(fmt.Sprintf("kernels: %s of %s is %d, which exceeds 32 bits", p.Name, k.Name, v))
		}
	case uint64:
		if p.Kind == Uint64 {
			return v
		}
	case float32:
		if p.Kind == Float32 {
			return uint64(math.Float32bits(v))
		}
	case float64:
		if p.Kind == Float64 {
			return math.Float64bits(v)
		}
	}
	panic(fmt.Sprintf("kernels: %s of %s is a %T, want kind %c", p.Name, k.Name, arg, p.Kind))
}

// threads is the number of threads per block of elementwise kernels.
const threads = 256

// over returns the geometry of n threads in blocks of the usual size.
func over(n int) Launch { return blocks(n, threads) }

func blocks(n, size int) Launch {
	return Launch{Grid: [3]uint32{uint32((n + size - 1) / size), 1, 1}, Block: [3]uint32{uint32(size), 1, 1}}
}
