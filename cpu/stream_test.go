package cpu

import (
	"fmt"
	"testing"
)

// A vector goes past the caches if it is long and not read, whichever of those that are read it
// would be.
func TestPassesCaches(t *testing.T) {
	defer func(old int) { streamFrom = old }(streamFrom)
	streamFrom = 100
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
		if got := passesCaches(c.d, c.read...); got != c.want {
			t.Errorf("%s: %t, want %t", c.what, got, c.want)
		}
	}
}

// The element-wise kernels give the same bits past the caches, alone and in parts, into a vector of
// its own or an input, and write nothing beside it.
func TestElementwiseOfLongVectors(t *testing.T) {
	defer func(old int) { streamFrom = old }(streamFrom)
	team := newTeam(3)
	defer team.stop()
	const n = 1<<16 + 77 // enough for every thread to get a part
	for name, kernel := range map[string]func(*operands) error{
		"scale": scale, "scale-by": scaleBy, "add": add, "add-scaled": addScaled,
		"sigmoid-grad": sigmoidGrad, "relu": relu, "relu-grad": reluGrad,
	} {
		run := func(from, into int, lent *lent) *Vector {
			streamFrom = from
			out, whole := framed("out", n)
			a, b := noise("a", n), noise("b", n)
			if into >= 0 {
				out.Data = [][]float32{a, b}[into]
			}
			if err := kernel(&operands{in: [][]float32{a, b}, out: [][]float32{out.Data}, dims: []int{n}, attr: 0.5,
				lent: lent}); err != nil {
				t.Fatal(err)
			}
			if !whole() {
				t.Fatalf("%s, long from %d: words around the output were overwritten", name, from)
			}
			return out
		}
		want := run(1<<40, -1, nil)
		sameWords(t, name+" past the caches", run(n, -1, nil).Data, want.Data)
		sameWords(t, name+" past the caches in parts", run(n, -1, &lent{team}).Data, want.Data)
		sameWords(t, name+" into its first input", run(n, 0, nil).Data, want.Data)
		if name != "scale-by" { // the factor is one number
			sameWords(t, name+" into its second input", run(n, 1, nil).Data, want.Data)
		}
	}
}

// What goes past the caches allocates as little as what does not.
func TestStreamsAllocateNothing(t *testing.T) {
	defer func(old int) { streamFrom = old }(streamFrom)
	streamFrom = 100
	o := &operands{in: [][]float32{noise("a", 1000), noise("b", 1000)}, out: [][]float32{make([]float32, 1000)},
		dims: []int{1000}, attr: 0.5}
	for i, kernel := range []func(*operands) error{scale, scaleBy, add, addScaled, sigmoidGrad, relu, reluGrad} {
		if n := testing.AllocsPerRun(5, func() { _ = kernel(o) }); n != 0 {
			t.Errorf("kernel %d allocates %v times", i, n)
		}
	}
}

// BenchmarkElementwise counts the bytes read and written around streamFrom, by ordinary stores and
// past the caches.
func BenchmarkElementwise(b *testing.B) {
	usual := streamFrom
	defer func() { streamFrom = usual }()
	for n := usual / 8; n <= 2*usual; n *= 2 {
		for _, past := range []bool{false, true} {
			o := &operands{in: [][]float32{long("a", n).Data, long("b", n).Data}, out: [][]float32{long("out", n).Data},
				dims: []int{n}, attr: 0.5}
			for _, k := range []struct {
				name  string
				reads int
				run   func(*operands) error
			}{{"relu", 1, relu}, {"add", 2, add}} {
				b.Run(fmt.Sprintf("%s/n=%d/past=%t", k.name, n, past), func(b *testing.B) {
					if streamFrom = 1 << 40; past {
						streamFrom = n
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
