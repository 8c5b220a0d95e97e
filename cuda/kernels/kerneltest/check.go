package kerneltest

import (
	"math"
	"testing"
	"unsafe"

	"fspda/cuda/kernels"
	"fspda/internal/rng"
)

// Runner has memory that kernels can reach, and runs them.
type Runner interface {
	// Alloc returns where so many bytes are, which hold anything, and Free gives them back.
	Alloc(bytes int) (kernels.Address, error)
	Free(at kernels.Address)
	// Run copies every region to its place, runs the calls one after the other, and copies all
	// back.
	Run(regions []kernels.Region, calls ...kernels.Call) error
}

// Check is a test of some kernels. It reports by Errorf.
type Check struct {
	Name string
	Run  func(testing.TB, Runner)
}

// Checks lists all.
func Checks() []Check {
	var all []Check
	for _, c := range []struct {
		name string
		run  func(*fixture)
	}{
		{"masks/stratified", stratified}, {"masks/stratified redraws", stratifiedRedraws}, {"masks/randk",
			subset}, {"masks/many randk", subsets}, {"masks/layers", layers},
		{"masks/block", block}, {"masks/bernoulli", bernoulli}, {"masks/stream key", streamKey},
		{"images/batch", imagesOfBatch}, {"images/crops", images},
		{"casts/every number", everyHalf}, {"casts/loss scale", lossScale}, {"casts/stretches",
			segments}, {"casts/unscaled", unscales},
		{"norms/relu masks", reluMasks}, {"norms/two maps", twoMaps}, {"lists/gradient pieces", gradPieces}, {"lists/moves",
			moves}, {"lists/penalties", penalties},
		{"products/tensor cores", tensorProducts}, {"megakernel", megakernel},
	} {
		all = append(all, Check{c.name, func(t testing.TB, r Runner) {
			b := &fixture{TB: t, runner: r, at: map[unsafe.Pointer]kernels.Address{}}
			defer b.release()
			c.run(b)
		}})
	}
	return all
}

// bench runs kernels on slices of the host.
type fixture struct {
	testing.TB
	runner  Runner
	regions []kernels.Region
	at      map[unsafe.Pointer]kernels.Address
	broken  bool // the runner failed: what it gives is of no use
}

// at is the address that stands for a slice of at least one number: run brings it there and back.
func at[T any](b *fixture, s []T) kernels.Address {
	p := unsafe.Pointer(unsafe.SliceData(s))
	if a, ok := b.at[p]; ok {
		return a
	}
	bytes := unsafe.Slice((*byte)(p), len(s)*int(unsafe.Sizeof(s[0])))
	a, err := b.runner.Alloc(len(bytes))
	if err != nil {
		b.fail(err)
		return 0
	}
	b.at[p] = a
	b.regions = append(b.regions, kernels.Region{At: a, Bytes: bytes})
	return a
}

// run runs calls on all slices that have an address.
func (b *fixture) run(calls ...kernels.Call) {
	if b.broken {
		return
	}
	if err := b.runner.Run(b.regions, calls...); err != nil {
		b.fail(err)
	}
}

// fail reports the first failure of the runner.
func (b *fixture) fail(err error) {
	if !b.broken {
		b.Errorf("%v", err)
	}
	b.broken = true
}

// release gives all addresses back.
func (b *fixture) release() {
	for _, s := range b.regions {
		b.runner.Free(s.At)
	}
	b.regions = nil
	clear(b.at)
}

// numbers is n normal numbers of float32.
func numbers(seed uint64, n int) []float32 {
	s, v := rng.New(seed, "test"), make([]float32, n)
	for i := range v {
		v[i] = float32(s.Norm())
	}
	return v
}

// sameBits reports the first number of got whose bits are not those of want.
func sameBits(b *fixture, what string, got, want []float32) {
	for i := range want {
		if b.broken {
			return
		}
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) && (got[i] == got[i] || want[i] == want[i]) {
			b.Errorf("%s: number %d of %d is %v, want %v", what, i, len(got), got[i], want[i])
			return
		}
	}
}
