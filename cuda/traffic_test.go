package cuda

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cuda/cublas"
	"fspda/cuda/cudnn"
	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// traffic is the launches of a run by kernel, and the bytes that each reads and writes, each
// operand of each pass once.
type traffic struct {
	launches map[string]int
	bytes    map[string]float64
}

func (c traffic) add(kernel string, bytes int) {
	c.launches[kernel]++
	c.bytes[kernel] += float64(bytes)
}

func (c traffic) total() (launches int, bytes float64) {
	for k := range c.launches {
		launches += c.launches[k]
		bytes += c.bytes[k]
	}
	return launches, bytes
}

// perImage has a line for each kernel, with the bytes of one image of a batch.
func (c traffic) perImage(images int) string {
	var s strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.launches)) {
		fmt.Fprintf(&s, "%-28s %5d launches %8.2f MB an image\n", k, c.launches[k], c.bytes[k]/float64(images)/1e6)
	}
	n, b := c.total()
	fmt.Fprintf(&s, "%-28s %5d launches %8.2f MB an image\n", "all", n, b/float64(images)/1e6)
	return s.String()
}

// trafficOf counts a run of code without running it: a fake GPU ignores the launches, and the
// addresses are not allocated.
func trafficOf(t *testing.T, code *device.Code, p Precision) traffic {
	t.Helper()
	c := traffic{map[string]int{}, map[string]float64{}}
	m := fakegpu.New(fakegpu.Options{})
	byName := map[string]*kernels.Kernel{}
	for _, k := range kernels.All() {
		byName[k.Name] = k
	}
	m.SetKernels(func(name string) (int, bool) { k := byName[name]; return len(k.Params), k != nil },
		func(l fakegpu.Launch) error {
			name, grid, args := l.Kernel, l.Grid, l.Args
			c.add(name, movedBy(byName[name], grid, args))
			return nil
		})
	machine := backendOn(m)
	dnn, blas := newFakeDNN(m).api(), fakeBLAS(m)
	dnn.Backend = nil // the traffic does not depend on the implementation
	countConvolutions(dnn, c)
	blas.GemmEx = func(_ cublas.Ptr, _, _, rows, cols, k int32, _ *float32, _ driver.Pointer, of cublas.Type, _ int32,
		_ driver.Pointer, _ cublas.Type, _ int32,
		_ *float32, _ driver.Pointer, _ cublas.Type, _ int32, _ cublas.Compute, _ int32) cublas.Status {
		c.add("gemm", p.Element().Size()*int(rows*cols+cols*k+rows*k))
		return 0
	}
	find := machine.libraries
	machine.libraries = func(g driver.Properties) (libraries, error) {
		made, err := find(g)
		made.dnn, made.blas, made.lt = dnn, blas, nil
		return made, err
	}
	d, err := open(machine, WithPrecision(p), Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	program, err := d.load(code)
	if err != nil {
		t.Fatal(err)
	}
	far := func(i int) kernels.Address { return kernels.Address(i) << 40 }
	err = d.exec.Do(func() error {
		if err := d.exec.Synchronize(); err != nil { // loading is not counted
			return err
		}
		clear(c.launches)
		clear(c.bytes)
		err := program.sendSteps(program.env(d.exec, program.mems[0], programKey{far(1), far(2), far(3), far(4), far(5),
			far(6), far(7)}))
		return errors.Join(err, d.exec.Synchronize())
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// countConvolutions replaces convolutions by functions that only count.
func countConvolutions(a *cudnn.API, c traffic) {
	images, filters, size := map[cudnn.Tensor]int{}, map[cudnn.Filter]int{}, map[cudnn.Type]int{cudnn.Float32: 4,
		cudnn.Float16: 2, cudnn.BFloat16: 2}
	a.SetTensor = func(t cudnn.Tensor, _ int32, of cudnn.Type, i, ch, h, w int32) cudnn.Status {
		images[t] = size[of] * int(i*ch*h*w)
		return 0
	}
	a.SetFilter = func(f cudnn.Filter, of cudnn.Type, _ int32, k, ch, r, s int32) cudnn.Status {
		filters[f] = size[of] * int(k*ch*r*s)
		return 0
	}
	a.Forward = func(_ cudnn.Ptr, _ *float32, x cudnn.Tensor, _ driver.Pointer, w cudnn.Filter, _ driver.Pointer,
		_ cudnn.Descriptor, _ int32,
		_ driver.Pointer, _ uintptr, _ *float32, y cudnn.Tensor, _ driver.Pointer) cudnn.Status {
		c.add("conv", images[x]+filters[w]+images[y])
		return 0
	}
	a.BackwardData = func(_ cudnn.Ptr, _ *float32, w cudnn.Filter, _ driver.Pointer, y cudnn.Tensor, _ driver.Pointer,
		_ cudnn.Descriptor, _ int32,
		_ driver.Pointer, _ uintptr, _ *float32, x cudnn.Tensor, _ driver.Pointer) cudnn.Status {
		c.add("conv_grad_x", images[x]+filters[w]+images[y])
		return 0
	}
	a.BackwardFilter = func(_ cudnn.Ptr, _ *float32, x cudnn.Tensor, _ driver.Pointer, y cudnn.Tensor, _ driver.Pointer,
		_ cudnn.Descriptor, _ int32,
		_ driver.Pointer, _ uintptr, _ *float32, w cudnn.Filter, _ driver.Pointer) cudnn.Status {
		c.add("conv_grad_w", images[x]+filters[w]+images[y])
		return 0
	}
}

// movedBy returns the bytes of matrices that a launch moves, without scalars and vectors of one
// number for each channel. A null operand does not exist.
func movedBy(k *kernels.Kernel, grid [3]uint32, args []uint64) int {
	arg := map[string]int{}
	for i, p := range k.Params {
		arg[p.Name] = int(int64(args[i]))
		if p.Kind == kernels.Int32 {
			arg[p.Name] = int(int32(args[i]))
		}
	}
	there := func(names ...string) (n int) {
		for _, name := range names {
			if arg[name] != 0 {
				n++
			}
		}
		return n
	}
	size := 4
	name, element, ok := strings.Cut(k.Name, "_f16")
	if !ok {
		name, element, ok = strings.Cut(k.Name, "_bf16")
	}
	if ok && element == "" {
		size = 2
	}
	name = strings.TrimSuffix(name, "_f32")
	matrix := arg["m"] * arg["c"]
	sums := func() int { return 16 * int(grid[1]) * arg["c"] } // parts of the blocks, which the last ones read
	packs := matrix * size / 16
	n := arg["n"]
	switch name {
	case "norm_moments":
		return size*matrix + sums()
	case "norm_apply", "norm_apply_two":
		return size*matrix*there("x", "y", "z") + packs*there("mask")
	case "norm_grad_sums":
		y := 0
		if arg["relu_mask"] == 1 {
			y = 1
		}
		return size*matrix*(there("x", "dy", "other", "dz")+y) + packs*there("mask") + sums()
	case "norm_grad_apply":
		moved := size * matrix * 3
		if arg["relu_mask"] == 1 {
			moved += size * matrix
		}
		if arg["relu_mask"] == 2 {
			moved += packs
		}
		return moved
	case "max_pool", "max_pool_norm", "max_pool_grad":
		at := map[bool]int{true: 4, false: 1}[size == 4]
		return arg["images"] * arg["c"] * (arg["h"]*arg["w"]*size + arg["p"]*arg["q"]*(size+at))
	case "avg_pool", "avg_pool_grad":
		return size * arg["images"] * arg["c"] * (arg["m"] + 1)
	case "narrow", "widen":
		return 6 * n
	case "pad":
		return arg["rows"] * (4*arg["c"] + 2*arg["padded"])
	case "crop":
		return arg["rows"] * (2*arg["padded"] + 4*arg["c"])
	case "weighted_sum":
		return size * n * there("a", "b", "y")
	case "add", "scaled_sum", "combine":
		return 12 * n
	}
	return 4 * n
}

// docs/performance.md quotes these launches and bytes of a step of ResNet-50.
func TestTrafficOfResNet50(t *testing.T) {
	net, err := model.Open("resnet50", model.Options{Shape: []int{224, 224, 3}, Classes: 1000,
		Loss: model.LossOptions{WeightDecay: 1e-4}})
	if err != nil {
		t.Fatal(err)
	}
	const batch = 128
	plan, err := net.Plan(batch, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		precision Precision
		launches  int
		megabytes float64 // an image
	}{{FP16, 388, 341.8}, {BF16, 385, 340.9}, {TF32, 382, 679.1}, {FP32, 382, 679.1}} {
		c := trafficOf(t, plan.Code(), want.precision)
		t.Logf("%s\n%s", want.precision, c.perImage(batch))
		if n, b := c.total(); n != want.launches || math.Abs(b/batch/1e6-want.megabytes) > 0.1 {
			t.Errorf("%s: %d launches move %.1f MB an image, want %d and %v: bring docs/performance.md up to date",
				want.precision, n, b/batch/1e6, want.launches, want.megabytes)
		}
	}
}
