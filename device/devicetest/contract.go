package devicetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// check is one part of the contract.
type check struct {
	name string
	run  func(f *field)
}

// on runs the check on a device.
func (c check) on(t testing.TB, round arithmetic, d device.Device, few bool) {
	f := &field{TB: t, d: d, round: round, few: few}
	c.run(f)
	f.done()
}

// arithmetic rounds v to the nearest value that a device can represent.
type arithmetic func(v float64) float64

// float32Arithmetic is the arithmetic of every real device. A sum or product of two float32 values,
// computed in float64 and then rounded, is the correctly rounded float32, so references can be
// computed in float64.
func float32Arithmetic(v float64) float64 { return float64(float32(v)) }

// Contract tests that the device returned by open conforms to device.Device and device.Kernel:
// every vector operation to the last bit, every kernel within its error bounds, no writes outside
// the outputs, reproducible bits, and the specified panics and errors.
func Contract(t *testing.T, open func() device.Device) { contract(t, open, Checks()) }

// ShortContract is Contract with a third of the lengths of vectors, a fifth of the small shapes of
// matrices, no large matrix to orthogonalize, and the operands of a kernel in one of two spaces in
// turn: for a slow device, one that does not compute in vector registers.
func ShortContract(t *testing.T, open func() device.Device) { contract(t, open, checksOf(true)) }

func contract(t *testing.T, open func() device.Device, checks []Check) {
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, open()) })
	}
}

// Check is one part of the contract, for callers outside of go test. It reports by Errorf,
// or by Fatalf where it cannot continue.
type Check struct {
	Name     string
	Networks bool // runs code and compares it with the bounds of float32
	Run      func(testing.TB, device.Device)
}

// Checks lists all parts of the contract.
func Checks() []Check { return checksOf(false) }

func checksOf(few bool) []Check {
	var all []Check
	add := func(c check, networks bool) {
		run := func(t testing.TB, d device.Device) { c.on(t, float32Arithmetic, d, few) }
		all = append(all, Check{c.name, networks, run})
	}
	for i, c := range slices.Concat(vectorChecks, programChecks) {
		add(c, i >= len(vectorChecks))
	}
	for _, k := range device.Kernels() {
		add(check{"kernel/" + string(k), func(f *field) { checkKernel(f, k) }}, true)
	}
	return all
}

// field allocates vectors on a device, each between two guard vectors that must not change.
type field struct {
	testing.TB
	d      device.Device
	round  arithmetic
	few    bool // few lengths and shapes
	guards []device.Vector
}

// must ends the check if there is an error.
func (f *field) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("%v", err)
	}
}

func (f *field) load(code *device.Code) device.Program {
	f.Helper()
	p, err := f.d.Load(code)
	f.must(err)
	return p
}

// guardWord fills the guards and the surroundings of host slices. No test computes this value.
const guardWord = float32(-0x1.abcdefp-77)

// vector returns a vector on the device that holds v.
func (f *field) vector(v []float32) device.Vector {
	f.guard()
	x := f.d.NewVector(len(v))
	f.guard()
	f.d.Write(x, v)
	return x
}

func (f *field) guard() {
	g := f.d.NewVector(3)
	f.d.Write(g, slices.Repeat([]float32{guardWord}, 3))
	f.guards = append(f.guards, g)
}

// read returns the numbers of x, and reports an error if Read wrote outside dst.
func (f *field) read(x device.Vector) []float32 {
	f.Helper()
	host := slices.Repeat([]float32{guardWord}, x.Len()+4)
	got := host[2 : len(host)-2]
	f.d.Read(got, x)
	for _, i := range []int{0, 1, len(host) - 2, len(host) - 1} {
		if host[i] != guardWord {
			f.Errorf("Read of %d numbers wrote at %d of the slice around dst", x.Len(), i-2)
		}
	}
	return got
}

// done reports guards that were overwritten.
func (f *field) done() {
	f.Helper()
	for i, g := range f.guards {
		for j, v := range f.read(g) {
			if v != guardWord {
				f.Errorf("word %d of guard vector %d was overwritten with %v", j, i, v)
			}
		}
	}
	f.guards = nil
}

// equal reports the first element of got whose bits differ from want, rounded to float32. All NaN
// are equal.
func equal(t testing.TB, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i, g := range got {
		if w := float32(want[i]); !same(g, w) {
			t.Errorf("%s: element %d of %d is %v (%08x), want %v (%08x)", what, i, len(got), g, math.Float32bits(g), w,
				math.Float32bits(w))
			return
		}
	}
}

func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b }

// specials are mixed into test data: every kind of float32, and numbers whose products are
// denormal.
var specials = []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()), math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1.fffffcp-127, 0x1p-126,
	0x1.5p-70, -0x1.3p-64, math.MaxFloat32, -math.MaxFloat32, 0x1.fffffep0}

// normal returns n ordinary numbers of mixed size and sign.
func normal(name string, n int) []float32 {
	s, v := rng.New(1, "devicetest", uint64(len(name)), uint64(n)), make([]float32, n)
	for _, c := range []byte(name) {
		s = s.Sub(uint64(c))
	}
	for i := range v {
		v[i] = float32(math.Ldexp(s.Norm(), s.IntN(8)-4))
	}
	return v
}

// mixed returns n numbers, one in four of them special.
func mixed(name string, n int) []float32 {
	s, v := rng.New(2, name, uint64(n)), normal(name, n)
	for i := range v {
		if s.IntN(4) == 0 {
			v[i] = specials[s.IntN(len(specials))]
		}
	}
	return v
}

// widen returns v as float64.
func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

// subset returns about every every-th of n coordinates, ascending.
func subset(name string, n, every int) []uint32 {
	s, at := rng.New(3, name, uint64(n), uint64(every)), []uint32{}
	for i := range n {
		if s.IntN(every) == 0 {
			at = append(at, uint32(i))
		}
	}
	return at
}

// lengths are all lengths up to several vector registers, or some of them, and a few long ones.
func (f *field) lengths() []int {
	n := []int{1000, 1024, 10007}
	if f.few {
		return append(n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 67)
	}
	for i := range 68 {
		n = append(n, i)
	}
	return n
}

// panics reports an error if f does not panic with a message.
func panics(t testing.TB, what string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r := recover(); r == nil {
			t.Errorf("%s: no panic", what)
		} else if fmt.Sprint(r) == "" {
			t.Errorf("%s: panic without a message", what)
		}
	}()
	f()
}
