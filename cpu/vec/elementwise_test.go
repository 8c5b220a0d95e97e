package vec

import (
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// AddScaled is bit-identical to Scale followed by Add: plans may fuse them.
func TestAddScaledIsScaleThenAdd(t *testing.T) {
	a, b := kerneltest.Noise("a", 999), kerneltest.Noise("b", 999)
	scaled := run1(t, scale, b)
	want, got := run1(t, add, a, scaled), run1(t, addScaled, a, b)
	byOne := run1(t, scaleBy, b, []float32{1})
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("element %d is %v, want %v", i, got[i], want[i])
		}
		if byOne[i] != scaled[i] {
			t.Fatalf("scale-by of 1: element %d is %v, want %v", i, byOne[i], scaled[i])
		}
	}
}

// An output may be an input.
func TestElementwiseInPlace(t *testing.T) {
	for name, run := range map[string]func(*kernel.Args) error{
		"scale": scale, "scale-by": scaleBy, "add": add, "add-scaled": addScaled,
		"sigmoid": sigmoid, "sigmoid-grad": sigmoidGrad, "relu": relu, "relu-grad": reluGrad,
	} {
		for place := range 2 {
			a, b := kerneltest.Noise("a", 301), kerneltest.Noise("b", 301)
			want := run1(t, run, a, b)
			out := [][]float32{a, b}[place]
			if name == "scale-by" && place == 1 {
				continue // the factor is one number
			}
			if err := run(&kernel.Args{In: [][]float32{a, b}, Out: [][]float32{out}, Dims: []int{301},
				Attr: 0.5}); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if out[i] != want[i] {
					t.Fatalf("%s into input %d: element %d is %v, want %v", name, place, i, out[i], want[i])
				}
			}
		}
	}
}

// HalfSquare accumulates in float64: small squares are not lost next to a large one.
func TestHalfSquare(t *testing.T) {
	x := make([]float32, 1+1<<12)
	x[0] = 1 << 12
	for i := 1; i < len(x); i++ {
		x[i] = 1
	}
	got := make([]float32, 1)
	if err := halfSquare(&kernel.Args{In: [][]float32{x}, Out: [][]float32{got}, Dims: []int{len(x)},
		Attr: 2}); err != nil {
		t.Fatal(err)
	}
	if want := float32(1<<24 + 1<<12); got[0] != want {
		t.Errorf("%v, want %v", got[0], want)
	}
}

func BenchmarkScale(b *testing.B)      { bench(b, 78400, scale, 1, 1) }
func BenchmarkScaleBy(b *testing.B)    { bench(b, 78400, scaleBy, 2, 1) }
func BenchmarkAdd(b *testing.B)        { bench(b, 78400, add, 2, 1) }
func BenchmarkAddScaled(b *testing.B)  { bench(b, 78400, addScaled, 2, 1) }
func BenchmarkHalfSquare(b *testing.B) { bench(b, 78400, halfSquare, 1, 1) }
