//go:build (amd64 || arm64) && !noasm && !fspda_noasm

package dist

import (
	"math"
	"testing"

	"fspda/internal/rng"
)

// The assembly has the bits of the Go code: forward, inverse and signs, of chunks of
// all widths, with numbers that are zero, negative zero or infinite.
func TestTransformTwins(t *testing.T) {
	if !useTransform {
		t.Skip("this processor has no assembly")
	}
	defer func() { useTransform = true }()
	var shapes [][2]int
	d := 0
	for n := 1; n <= 64; n++ {
		shapes = append(shapes, [2]int{1 + n%7, n}, [2]int{n, 0})
		d += (1+n%7)*n + n
	}
	shapes = append(shapes, [2]int{64, 128})
	d += 64 * 128
	c := NewTransform[float32](shapes, 64)
	for kind := range 3 {
		v, sent, counts := make([]float32, d), make([]float32, d), make([]float32, d)
		s := rng.New(4, "twins")
		for i := range v {
			v[i] = float32(s.Norm())
			switch {
			case s.IntN(3) > 0: // of no agent
			case kind == 1 && s.IntN(20) == 0:
				v[i], sent[i] = float32(math.Copysign(0, -1)), float32(math.Copysign(0, -1))
			case kind == 2 && s.IntN(400) == 0:
				v[i], sent[i] = float32(math.Inf(-1)), float32(math.Inf(1))
			default:
				counts[i] = float32(1 + s.IntN(3))
				sent[i] = float32(s.Norm())
			}
		}
		var out [2][3][]float32
		for k, fast := range []bool{false, true} {
			useTransform = fast
			for j := range out[k] {
				out[k][j] = make([]float32, d)
			}
			c.Forward(out[k][0], v)
			c.Inverse(out[k][1], sent)
			c.Signs(out[k][2], append([]float32(nil), sent...), counts)
		}
		for j, what := range []string{"forward", "inverse", "signs"} {
			for i, x := range out[0][j] {
				if y := out[1][j][i]; math.Float32bits(x) != math.Float32bits(y) && (x == x || y == y) {
					t.Fatalf("numbers of kind %d: %s of number %d is %v in Go and %v in assembly", kind, what, i, x, y)
				}
			}
		}
	}
}

func BenchmarkTransform(b *testing.B) {
	defer func() { useTransform = true }()
	c := NewTransform[float32]([][2]int{{784, 100}, {100, 0}, {100, 10}, {10, 0}}, 64)
	v, all := make([]float32, 79510), make([]float32, 79510)
	for i := range v {
		v[i] = float32(i%7) - 3
		if i%90 == 0 {
			all[i] = 1
		}
	}
	out := make([]float32, len(v))
	for name, f := range map[string]func(){
		"forward": func() { c.Forward(out, v) }, "inverse": func() { c.Inverse(out, all) }} {
		for _, fast := range []bool{false, true} {
			useTransform = fast && useTransform
			b.Run(name+map[bool]string{false: "/go", true: "/assembly"}[fast], func(b *testing.B) {
				for b.Loop() {
					f()
				}
			})
			useTransform = true
		}
	}
}
