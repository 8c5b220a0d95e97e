package cpu

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"testing"

	"fspda/cpu/isa"
	"fspda/cpu/tile"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// block writes code of a residual block and its gradient, whose operands are in the arena as far as
// a call has written them, and in the parameters else.
type block struct {
	code *device.Code
	refs map[string]device.Ref
}

// call adds a call. Names of operands that no call has written are parameters, those that begin with
// an exclamation mark are written to the gradient.
func (b *block) call(k device.Kernel, dims []int, attr float64, in, out []string) {
	e := signature.Of(k)
	c := device.Call{Kernel: k, Dims: dims, Attr: attr}
	for i, name := range in {
		r, ok := b.refs[name]
		if !ok {
			r = device.Ref{Space: device.Params, Off: b.code.Dim, Len: e.Size(e.In[i], dims)}
			b.code.Dim += r.Len
			b.refs[name] = r
		}
		c.In = append(c.In, r)
	}
	for i, name := range out {
		r := device.Ref{Space: device.Arena, Off: b.code.Arena, Len: e.Size(e.Out[i], dims)}
		if name[0] == '!' {
			r.Space, r.Off = device.Grads, b.code.Dim
			b.code.Dim += r.Len
		} else if same, ok := b.refs[name]; ok {
			r = same
		} else {
			b.code.Arena += (r.Len + 15) / 16 * 16
		}
		b.refs[name] = r
		c.Out = append(c.Out, r)
	}
	b.code.Calls = append(b.code.Calls, c)
}

// residual returns a block of images of side×side pixels with c channels, whose convolutions have
// some stride: x → 3×3 → norm, ReLU → 1×1 → norm, plus the norm of a 1×1 of x, ReLU, and back. The
// values that are named have 32 bits.
func residual(n, side, c, stride int, wide ...string) *device.Code {
	b := &block{&device.Code{Name: fmt.Sprint("residual", n, side, c, stride), Batch: 1, Features: 1, Gradient: true},
		map[string]device.Ref{}}
	out := (side-1)/stride + 1
	conv := func(side, filter, stride int) []int {
		return []int{n, side, side, c, c, filter, filter, stride, filter / 2}
	}
	norm := func(side int) []int { return []int{n * side * side, c} }
	const eps = 2 // random variances may be as low as -1
	b.call(device.Conv, conv(side, 1, 1), 0, []string{"in", "w0"}, []string{"x0"})
	b.call(device.BatchNormReLU, norm(side), eps, []string{"x0", "g0", "b0"}, []string{"x", "m0", "v0"})
	b.call(device.Conv, conv(side, 3, stride), 0, []string{"x", "w1"}, []string{"u1"})
	b.call(device.BatchNormReLU, norm(out), eps, []string{"u1", "g1", "b1"}, []string{"y1", "m1", "v1"})
	b.call(device.Conv, conv(out, 1, 1), 0, []string{"y1", "w2"}, []string{"u2"})
	b.call(device.Conv, conv(side, 1, stride), 0, []string{"x", "w3"}, []string{"u3"})
	b.call(device.BatchNorm, norm(out), eps, []string{"u3", "g3", "b3"}, []string{"y3", "m3", "v3"})
	b.call(device.BatchNormAddReLU, norm(out), eps, []string{"u2", "g2", "b2", "y3"}, []string{"y", "m2", "v2"})
	b.call(device.Conv, conv(out, 1, 1), 0, []string{"y", "w4"}, []string{"!y4"})

	b.call(device.ConvGradX, conv(out, 1, 1), 0, []string{"dy4", "w4"}, []string{"dy"})
	b.call(device.ConvGradW, conv(out, 1, 1), 0, []string{"y", "dy4"}, []string{"!w4"})
	b.call(device.BatchNormAddReLUGrad, norm(out), eps, []string{"u2", "y", "dy", "g2", "m2", "v2"},
		[]string{"du2", "dz", "!g2", "!b2"})
	b.call(device.BatchNormGrad, norm(out), eps, []string{"u3", "dz", "g3", "m3", "v3"}, []string{"du3", "!g3", "!b3"})
	b.call(device.ConvGradW, conv(side, 1, stride), 0, []string{"x", "du3"}, []string{"!w3"})
	b.call(device.ConvGradX, conv(side, 1, stride), 0, []string{"du3", "w3"}, []string{"dx"})
	b.call(device.ConvGradW, conv(out, 1, 1), 0, []string{"y1", "du2"}, []string{"!w2"})
	b.call(device.ConvGradX, conv(out, 1, 1), 0, []string{"du2", "w2"}, []string{"dy1"})
	b.call(device.BatchNormReLUGrad, norm(out), eps, []string{"u1", "y1", "dy1", "g1", "m1", "v1"},
		[]string{"du1", "!g1", "!b1"})
	b.call(device.ConvGradW, conv(side, 3, stride), 0, []string{"x", "du1"}, []string{"!w1"})
	b.call(device.ConvGradX, conv(side, 3, stride), 0, []string{"du1", "w1"}, []string{"dx1"})
	b.call(device.Add, []int{n * side * side * c}, 0, []string{"dx", "dx1"}, []string{"dx"})
	b.call(device.BatchNormReLUGrad, norm(side), eps, []string{"x0", "x", "dx", "g0", "m0", "v0"},
		[]string{"du0", "!g0", "!b0"})
	b.call(device.ConvGradW, conv(side, 1, 1), 0, []string{"in", "du0"}, []string{"!w0"})
	for _, name := range wide {
		b.call(device.HalfSquare, []int{b.refs[name].Len}, 1, []string{name}, []string{"!" + name + "²"})
	}
	return b.code
}

// stepByStep runs the calls of code one by one on float32 numbers. It rounds the values that have 16
// bits in the plan.
func stepByStep(t *testing.T, code *device.Code) []float32 {
	t.Helper()
	planned, halves := halved(code, pairKernels)
	params, grad, arena := kerneltest.Noise("params", code.Dim), make([]float32, code.Dim), make([]float32, code.Arena)
	spaces := map[device.Space][]float32{device.Params: params, device.Grads: grad, device.Arena: arena}
	rounded := 0
	for i := range code.Calls {
		c := &code.Calls[i]
		var in, out [][]float32
		for _, r := range c.In {
			in = append(in, slice(spaces[r.Space], r))
		}
		for _, r := range c.Out {
			out = append(out, slice(spaces[r.Space], r))
		}
		if err := pairKernels.Call(c, in, out); err != nil {
			t.Fatal(err)
		}
		for j, v := range out {
			if halves[i].Output(j) {
				roundBF16(v)
				rounded++
			}
		}
	}
	if rounded < 11 || 4*planned.Arena > 3*code.Arena {
		t.Errorf("%s: %d values have 16 bits, and the arena %d numbers in place of %d", code.Name, rounded,
			planned.Arena, code.Arena)
	}
	return grad
}

// Networks whose activations have 16 bits have the bits that float32 numbers rounded after every
// call have, on every instruction set, on tiles, and for every number of threads.
func TestBF16Activations(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	codes := []*device.Code{residual(2, 9, 48, 1), residual(3, 10, 32, 2),
		residual(2, 9, 34, 1, "y1", "y3", "dy", "dy1")}
	if os.Getenv("FSPDA_LONG") != "" {
		codes = append(codes, residual(5, 33, 34, 2), residual(3, 28, 64, 2), residual(1, 7, 1040, 1))
	}
	for which, code := range codes {
		compare := func(name string) {
			want := stepByStep(t, code)
			for _, threads := range []int{1, 2, 3} {
				d := New(BF16(), Threads(threads))
				kerneltest.Compare(t, fmt.Sprintf("%s %s on %d threads", code.Name, name, threads), runCode(t, d, code),
					want)
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				if isa.Active == isa.Go {
					break
				}
			}
		}
		compare("")
		if code.Dim < 1e6 && which != 1 { // Go is slow
			isa.With(isa.Go, func() { compare("in Go") })
			if isa.Assembly() {
				tile.WithTileModel(func() { compare("on tiles") })
			}
		}
		exact := runCode(t, New(), code)
		for i, v := range runCode(t, New(BF16()), code) {
			if math.Abs(float64(v-exact[i])) > 0.1*(1+math.Abs(float64(exact[i])))*math.Sqrt(float64(code.Dim)) {
				t.Fatalf("%s: number %d is %v, in float32 %v", code.Name, i, v, exact[i])
			}
		}
	}
}

// A result, a value that a call reads in part, and one that only sums write and read have 32 bits.
func TestBF16ActivationsKeepOthers(t *testing.T) {
	dims := []int{1, 8, 8, 32, 32, 1, 1, 1, 0}
	make := func() *block {
		b := &block{&device.Code{Batch: 1, Features: 1, Gradient: true}, map[string]device.Ref{}}
		b.call(device.Conv, dims, 0, []string{"x", "w"}, []string{"y"})
		b.call(device.Conv, dims, 0, []string{"y", "v"}, []string{"!z"})
		return b
	}
	for name, c := range map[string]struct {
		change func(b *block)
		want   bool
	}{
		"nothing else": {func(*block) {}, true},
		"a result":     {func(b *block) { b.code.Results = []device.Result{{Name: "y", Ref: b.refs["y"]}} }, false},
		"in part": {func(b *block) {
			b.refs["part"] = device.Ref{Space: device.Arena, Off: b.refs["y"].Off, Len: 16}
			b.call(device.Add, []int{16}, 0, []string{"part", "p"}, []string{"!s"})
		}, false},
		"a kernel of 32 bits": {func(b *block) {
			b.call(device.Scale, []int{2048}, 0, []string{"y"}, []string{"!s"})
		}, false},
	} {
		b := make()
		c.change(b)
		if _, halves := halved(b.code, pairKernels); halves[0].Output(0) != c.want || halves[1].Input(0) != c.want {
			t.Errorf("%s: 16 bits: %+v", name, halves)
		}
	}
	b := make()
	b.call(device.Add, []int{64}, 0, []string{"a", "b"}, []string{"sum"})
	b.call(device.Add, []int{64}, 0, []string{"sum", "c"}, []string{"!total"})
	if _, halves := halved(b.code, pairKernels); halves[2].Any() || halves[3].Any() {
		t.Errorf("a sum that only sums read has 16 bits: %+v", halves)
	}
}
