package vec

import (
	"fmt"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// A vector is written by non-temporal stores if it is long and none of the vectors that are read.
func TestNonTemporal(t *testing.T) {
	defer func(old int) { nonTemporalFrom = old }(nonTemporalFrom)
	nonTemporalFrom = 100
	long, short, x, one := make([]float32, 100), make([]float32, 99), make([]float32, 100), make([]float32, 1)
	for _, c := range []struct {
		what string
		d    []float32
		read [][]float32
		want bool
	}{
		{"apart", long, [][]float32{x}, true},
		{"apart from two", long, [][]float32{x, one}, true},
		{"into the first", long, [][]float32{long, x}, false},
		{"into the last", long, [][]float32{x, long}, false},
		{"short", short, [][]float32{x}, false},
	} {
		if got := nonTemporal(c.d, c.read...); got != c.want {
			t.Errorf("%s: %t, want %t", c.what, got, c.want)
		}
	}
}

// The element-wise kernels give the same bits with non-temporal stores, on one thread and on
// several, out of place and in place, and write nothing around the output.
func TestElementwiseOfLongVectors(t *testing.T) {
	defer func(old int) { nonTemporalFrom = old }(nonTemporalFrom)
	team := kernel.NewTeam(3)
	defer team.Stop()
	const n = 1<<16 + 77 // enough for every thread to get a part
	for name, run := range map[string]func(*kernel.Args) error{
		"scale": scale, "scale-by": scaleBy, "add": add, "add-scaled": addScaled,
		"sigmoid-grad": sigmoidGrad, "relu": relu, "relu-grad": reluGrad,
	} {
		run := func(from, into int, lent *kernel.Workers) *Vector {
			nonTemporalFrom = from
			out, whole := framed("out", n)
			a, b := kerneltest.Noise("a", n), kerneltest.Noise("b", n)
			if into >= 0 {
				out.Data = [][]float32{a, b}[into]
			}
			if err := run(&kernel.Args{In: [][]float32{a, b}, Out: [][]float32{out.Data}, Dims: []int{n}, Attr: 0.5,
				Workers: lent}); err != nil {
				t.Fatal(err)
			}
			if !whole() {
				t.Fatalf("%s, long from %d: words around the output were overwritten", name, from)
			}
			return out
		}
		want := run(1<<40, -1, nil)
		kerneltest.Compare(t, name+" by non-temporal stores", run(n, -1, nil).Data, want.Data)
		kerneltest.Compare(t, name+" by non-temporal stores in parts", run(n, -1, &kernel.Workers{Team: team}).Data,
			want.Data)
		kerneltest.Compare(t, name+" into its first input", run(n, 0, nil).Data, want.Data)
		if name != "scale-by" { // the factor is one number
			kerneltest.Compare(t, name+" into its second input", run(n, 1, nil).Data, want.Data)
		}
	}
}

// Non-temporal stores allocate nothing.
func TestStreamsAllocateNothing(t *testing.T) {
	defer func(old int) { nonTemporalFrom = old }(nonTemporalFrom)
	nonTemporalFrom = 100
	o := &kernel.Args{In: [][]float32{kerneltest.Noise("a", 1000), kerneltest.Noise("b", 1000)},
		Out: [][]float32{make([]float32, 1000)}, Dims: []int{1000}, Attr: 0.5}
	for i, run := range []func(*kernel.Args) error{scale, scaleBy, add, addScaled, sigmoidGrad, relu, reluGrad} {
		if n := testing.AllocsPerRun(5, func() { _ = run(o) }); n != 0 {
			t.Errorf("run %d allocates %v times", i, n)
		}
	}
}

// BenchmarkElementwise counts the bytes read and written around nonTemporalFrom, with ordinary and
// with non-temporal stores.
func BenchmarkElementwise(b *testing.B) {
	usual := nonTemporalFrom
	defer func() { nonTemporalFrom = usual }()
	for n := usual / 8; n <= 2*usual; n *= 2 {
		for _, past := range []bool{false, true} {
			o := &kernel.Args{In: [][]float32{longVector("a", n).Data, longVector("b", n).Data},
				Out: [][]float32{longVector("out", n).Data}, Dims: []int{n}, Attr: 0.5}
			for _, k := range []struct {
				name  string
				reads int
				run   func(*kernel.Args) error
			}{{"relu", 1, relu}, {"add", 2, add}} {
				b.Run(fmt.Sprintf("%s/n=%d/nontemporal=%t", k.name, n, past), func(b *testing.B) {
					if nonTemporalFrom = 1 << 40; past {
						nonTemporalFrom = n
					}
					b.SetBytes(int64(4 * n * (k.reads + 1)))
					for b.Loop() {
						_ = k.run(o)
					}
				})
			}
		}
	}
}

// Non-temporal stores give the same results, wherever dst begins.
func TestNonTemporalTwins(t *testing.T) {
	for _, c := range nonTemporalCases() {
		for _, n := range []int{0, 1, 15, 16, 17, 31, 33, 100, vecBlock + 40} {
			for offset := range 16 {
				checkTwins(t, c, n, offset, 5, 20)
			}
		}
	}
}
