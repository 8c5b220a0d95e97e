package isa

// ISA is an instruction set.
type ISA int

// The instruction sets that kernels are written for.
const (
	Go     ISA = iota // no assembly
	AVX2              // vectors of 8 float32; FMA is required too
	AVX512            // F, VL, DQ and BW, with BMI2: vectors of 16 float32
	NEON              // arm64: vectors of 8 float32, in two registers
)

// Count is the number of instruction sets, for tables indexed by ISA.
const Count = 4

// rows describes each instruction set: its name, the float32 numbers of a vector, and whether
// masks select a part of any vector.
var rows = [Count]struct {
	name   string
	lanes  int
	masked bool
}{Go: {name: "go", lanes: 1}, AVX2: {name: "avx2", lanes: 8}, AVX512: {"avx512", 16, true},
	NEON: {name: "neon", lanes: 8}}

// String returns "go", "avx2", "avx512" or "neon".
func (i ISA) String() string { return rows[i].name }

// Lanes returns the number of float32 in a vector, 1 for Go.
func (i ISA) Lanes() int { return rows[i].lanes }

// Active is the instruction set that the kernels use. Only tests change it, while no kernel runs.
var Active = Available()[0]

// Masked reports whether kernels read and write a part of a vector with masks.
func (i ISA) Masked() bool { return rows[i].masked }

// Assembly reports whether the active instruction set has assembly.
func Assembly() bool { return Active != Go }

// NoAssembly is the panic of a function that only assembly has, in a build without it.
const NoAssembly = "cpu: this build has no assembly: the caller must ask isa.Assembly first"

// With calls f while Active is i. It is for tests.
func With(i ISA, f func()) {
	defer func(old ISA) { Active = old }(Active)
	Active = i
	f()
}
