package isa

// ISA is an instruction set.
type ISA int

// The instruction sets that kernels are written for.
const (
	Go     ISA = iota // no assembly
	AVX2              // with FMA: vectors of 8 float32
	AVX512            // F, VL, DQ and BW, with BMI2: vectors of 16 float32
)

// Count is the number of instruction sets, for tables indexed by ISA.
const Count = 3

// String returns "go", "avx2" or "avx512".
func (i ISA) String() string { return [Count]string{"go", "avx2", "avx512"}[i] }

// Active is the instruction set that the kernels use. Only tests change it, while no kernel runs.
var Active = Available()[0]

// With calls f while Active is i. It is for tests.
func With(i ISA, f func()) {
	defer func(old ISA) { Active = old }(Active)
	Active = i
	f()
}
