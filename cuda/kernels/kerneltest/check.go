package kerneltest

import (
	"math"
	"testing"
	"unsafe"

	"fspda/cuda/kernels"
	"fspda/internal/rng"
)

// Runner allocates memory that kernels can access, and runs kernels.
type Runner interface {
	// Alloc allocates uninitialised bytes, and Free frees them.
	Alloc(bytes int) (kernels.Address, error)
	Free(at kernels.Address)
	// Run copies every region to its address, runs the calls in order, and copies all regions back.
	Run(regions []kernels.Region, calls ...kernels.Call) error
}

// Check is a test of some kernels. It reports failures by Errorf.
type Check struct {
	Name string
	Run  func(testing.TB, Runner)
}

// Checks returns all checks.
func Checks() []Check {
	var all []Check
	for _, c := range []struct {
		name string
		run  func(*fixture)
	}{
		{"masks/stratified", stratified}, {"masks/stratified redraws", stratifiedRedraws}, {"masks/randk", subsets},
		{"images/batch", imagesOfBatch}, {"images/crops", images},
		{"casts/every number", everyHalf}, {"casts/loss scale", lossScale}, {"casts/segments", segments},
		{"casts/unscaled", unscaling}, {"norms/relu masks", reluMasks}, {"norms/two maps", twoMaps},
		{"lists/gradient pieces", gradPieces}, {"lists/moves", moves}, {"lists/penalties", penalties},
		{"products/tensor cores", tensorProducts}, {"products/not finite", divergence},
		{"products/bytes", byteSums}, {"products/exact factors", byteFactors},
		{"products/bytes not finite", byteDivergence}, {"orthogonal", orthogonalEnds}, {"megakernel", megakernel},
		{"megakernel sizes", megakernelSizes},
	} {
		all = append(all, Check{c.name, func(t testing.TB, r Runner) {
			b := &fixture{TB: t, runner: r, at: map[unsafe.Pointer]kernels.Address{}}
			defer b.release()
			c.run(b)
		}})
	}
	return all
}

// fixture runs kernels on slices of the host.
type fixture struct {
	testing.TB
	runner  Runner
	regions []kernels.Region
	at      map[unsafe.Pointer]kernels.Address
}

// at returns the device address of a non-empty slice. run copies the slice there and back.
func at[T any](b *fixture, s []T) kernels.Address {
	p := unsafe.Pointer(unsafe.SliceData(s))
	if a, ok := b.at[p]; ok {
		return a
	}
	bytes := unsafe.Slice((*byte)(p), len(s)*int(unsafe.Sizeof(s[0])))
	a, err := b.runner.Alloc(len(bytes))
	if err != nil {
		b.Fatalf("%v", err)
	}
	b.at[p] = a
	b.regions = append(b.regions, kernels.Region{At: a, Bytes: bytes})
	return a
}

func (b *fixture) run(calls ...kernels.Call) {
	if err := b.runner.Run(b.regions, calls...); err != nil {
		b.Fatalf("%v", err)
	}
}

func (b *fixture) release() {
	for _, s := range b.regions {
		b.runner.Free(s.At)
	}
	b.regions = nil
	clear(b.at)
}

func numbers(seed uint64, n int) []float32 { return normalsOf(rng.New(seed, "test"), n) }

// normals returns n normally distributed float32 numbers of a stream of that name.
func normals(name string, n int) []float32 { return normalsOf(rng.New(7, name), n) }

func normalsOf(s rng.Stream, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(s.Norm())
	}
	return v
}

// sameBits reports the first number whose bits differ, and how many do.
func sameBits(b *fixture, what string, got, want []float32) {
	first, differ := 0, 0
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			if differ++; differ == 1 {
				first = i
			}
		}
	}
	if differ > 0 {
		b.Errorf("%s: number %d is %v, want %v; %d of %d differ", what, first, got[first], want[first], differ,
			len(got))
	}
}
