package gemm

import (
	"fmt"
	"math"
	"testing"

	"fspda/cpu/vec"
	"fspda/device"
	"fspda/device/signature"
	"fspda/internal/testing/kerneltest"
)

// separate runs a fused layer as two kernels.
func separate(t *testing.T, k device.Kernel, dims []int, attr float64, in [][]float32) [][]float32 {
	t.Helper()
	m, n, kk := dims[0], dims[1], dims[2]
	call := func(k device.Kernel, dims []int, in [][]float32, sizes ...int) [][]float32 {
		var out [][]float32
		for _, s := range sizes {
			out = append(out, make([]float32, s))
		}
		kernels := Kernels
		if _, ok := vec.Kernels[k]; ok {
			kernels = vec.Kernels
		}
		if err := kernels.Call(&device.Call{Kernel: k, Dims: dims, Attr: attr}, in, out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	switch k {
	case device.LinearSigmoid:
		return call(device.Sigmoid, []int{m * n}, call(device.Linear, dims, in, m*n), m*n)
	case device.LinearReLU:
		return call(device.ReLU, []int{m * n}, call(device.Linear, dims, in, m*n), m*n)
	case device.LinearGradXSigmoid:
		return call(device.SigmoidGrad, []int{m * kk},
			[][]float32{in[2], call(device.LinearGradX, dims, in[:2], m*kk)[0]}, m*kk)
	case device.LinearGradXReLU:
		return call(device.ReLUGrad, []int{m * kk}, [][]float32{in[2], call(device.LinearGradX, dims, in[:2], m*kk)[0]},
			m*kk)
	}
	out := call(device.LinearGradW, dims, in[:2], n*kk, n)
	out[0] = call(device.AddScaled, []int{n * kk}, [][]float32{out[0], in[2]}, n*kk)[0]
	return out
}

var fusedLayers = []device.Kernel{device.LinearSigmoid, device.LinearReLU, device.LinearGradXSigmoid,
	device.LinearGradXReLU, device.LinearGradWDecay}

// fusedOperands returns the inputs of a fused layer, by its signature, and outputs between guard
// words.
func fusedOperands(k device.Kernel, dims []int) (in, out, around [][]float32) {
	e := signature.Of(k)
	for i, shape := range e.In {
		in = append(in, kerneltest.Noise(fmt.Sprint(k, i), e.Size(shape, dims)))
	}
	for i, shape := range e.Out {
		n := e.Size(shape, dims)
		v := kerneltest.Noise(fmt.Sprint("guard", i), n+32)
		around = append(around, v)
		out = append(out, v[16:16+n:16+n])
	}
	return in, out, around
}

// checkLayer compares a fused layer with its two kernels, bit for bit.
func checkLayer(t *testing.T, k device.Kernel, dims []int) {
	t.Helper()
	in, out, around := fusedOperands(k, dims)
	want := separate(t, k, dims, -0.3, in)
	if err := Kernels.Call(&device.Call{Kernel: k, Dims: dims, Attr: -0.3}, in, out); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		kerneltest.Compare(t, fmt.Sprintf("%s %v, output %d", k, dims, i), out[i], want[i])
		guard := kerneltest.Noise(fmt.Sprint("guard", i), len(around[i]))
		for j, v := range around[i] {
			if inside := j >= 16 && j < len(around[i])-16; !inside && v != guard[j] {
				t.Fatalf("%s %v: word %d around output %d was written", k, dims, j-16, i)
			}
		}
	}
}

// A fused layer is bit-identical to its two kernels: in one chunk of products and in several, in
// one block of columns and in several, transposed or not, and with every implementation.
func TestFusedLayers(t *testing.T) {
	shapes := [][]int{{1, 1, 1}, {15, 17, 3}, {33, 100, 40}, {256, 10, 100}, {40, 10, 400}, {14, 300, 12},
		{70, 33, 770}, {30, 9, 300}}
	for _, k := range fusedLayers {
		for _, dims := range shapes {
			checkLayer(t, k, dims)
		}
	}
}

func FuzzFusedLayer(f *testing.F) {
	f.Add(uint8(0), uint16(20), uint16(30), uint16(40))
	f.Add(uint8(3), uint16(256), uint16(10), uint16(100))
	f.Fuzz(func(t *testing.T, which uint8, m, n, k uint16) {
		dims := []int{int(m)%300 + 1, int(n)%300 + 1, int(k)%800 + 1}
		if dims[0]*dims[1]*dims[2] > 3e6 {
			t.Skip("too much for one case")
		}
		checkLayer(t, fusedLayers[int(which)%len(fusedLayers)], dims)
	})
}

var specials = []float32{0x1p-149, -0x1p-130, float32(math.Copysign(0, -1)), float32(math.Inf(1)),
	float32(math.Inf(-1)), float32(math.NaN()), 0x1p127}

// Infinities, NaN and signed zeros pass through an epilogue as through the kernels.
func TestFusedLayersOfSpecials(t *testing.T) {
	dims := []int{17, 35, 9}
	for _, k := range fusedLayers {
		in, out, _ := fusedOperands(k, dims)
		for i := range in {
			for j, v := range specials {
				in[i][(7*j+i)%len(in[i])] = v
			}
		}
		want := separate(t, k, dims, -0.3, in)
		if err := Kernels.Call(&device.Call{Kernel: k, Dims: dims, Attr: -0.3}, in, out); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			kerneltest.Compare(t, fmt.Sprint(k, " of specials"), out[i], want[i])
		}
	}
}

// An epilogue does not check bounds; call.run does.
func TestEpiloguePanics(t *testing.T) {
	v := make([]float32, 12)
	for name, e := range map[string]epilogue{
		"short bias":   {op: addBias, operand: v[:1]},
		"short matrix": {op: timesReLUGrad, operand: v[:5]},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			(&call{m: 3, n: 2, k: 4, alpha: 1, a: v, lda: 4, b: v, ldb: 2, c: v, ldc: 2, epilogue: e}).run()
		}()
	}
}

// The epilogue is applied even if there are no products.
func TestEpilogueWithoutProducts(t *testing.T) {
	c := []float32{1, -2, 3, -4}
	(&call{m: 2, n: 2, alpha: 1, lda: 1, ldb: 2, beta: 1, c: c, ldc: 2,
		epilogue: epilogue{op: biasReLU, operand: []float32{1, 1}}}).run()
	for i, want := range []float32{2, 0, 4, 0} {
		if c[i] != want {
			t.Errorf("element %d is %v, want %v", i, c[i], want)
		}
	}
}

func BenchmarkFusedLayer(b *testing.B) {
	for _, c := range []struct {
		kernel device.Kernel
		dims   []int
	}{
		{device.Linear, []int{256, 100, 784}}, {device.LinearSigmoid, []int{256, 100, 784}}, {device.Linear,
			[]int{256, 10, 100}},
		{device.LinearGradX, []int{256, 10, 100}}, {device.LinearGradXSigmoid, []int{256, 10, 100}},
		{device.LinearGradW, []int{256, 100, 784}}, {device.LinearGradWDecay, []int{256, 100, 784}},
	} {
		b.Run(fmt.Sprint(c.kernel, c.dims), func(b *testing.B) {
			in, out, _ := fusedOperands(c.kernel, c.dims)
			call := &device.Call{Kernel: c.kernel, Dims: c.dims, Attr: 1e-4}
			for b.Loop() {
				if err := Kernels.Call(call, in, out); err != nil {
					b.Fatal(err)
				}
			}
			reportFLOPs(b, 2*float64(c.dims[0]*c.dims[1]*c.dims[2]))
		})
	}
}
