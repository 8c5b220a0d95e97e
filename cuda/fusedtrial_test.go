package cuda

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/driver/fakegpu"
	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
	"fspda/cuda/kernels/hostrun"
	"fspda/device"
	"fspda/selftest"
)

// linkedStep is a convolution of 1×1 between two normalisations, and its gradients. Its kernels can
// be fused in every way: forward, the gradient of its input, and both gradients.
func linkedStep() *device.Code {
	const n, h, c, k = 2, 8, 8, 64
	m, code := n*h*h, &device.Code{Name: "linked", Batch: 1, Features: 1, Gradient: true}
	params := func(n int) device.Ref {
		code.Dim += n
		return device.Ref{Space: device.Params, Off: code.Dim - n, Len: n}
	}
	gradient := func(of device.Ref) device.Ref { return device.Ref{Space: device.Grads, Off: of.Off, Len: of.Len} }
	value := func(n int) device.Ref {
		code.Arena += n
		return device.Ref{Space: device.Arena, Off: code.Arena - n, Len: n}
	}
	add := func(kernel device.Kernel, dims []int, in []device.Ref, out ...device.Ref) []device.Ref {
		code.Calls = append(code.Calls, device.Call{Kernel: kernel, Dims: dims, In: in, Out: out, Attr: 1e-5})
		return out
	}
	start, w := params(m*c), params(k*c)
	wide, narrow := [2]device.Ref{params(k), params(k)}, [2]device.Ref{params(c), params(c)}
	conv := []int{n, h, h, c, k, 1, 1, 1, 0}
	first := []int{n, h, h, c, c, 1, 1, 1, 0}
	x := add(device.Conv, first, []device.Ref{start, params(c * c)}, value(m*c))[0]
	a := add(device.BatchNormReLU, []int{m, c}, []device.Ref{x, narrow[0], narrow[1]}, value(m*c), value(c), value(c))
	y := add(device.Conv, conv, []device.Ref{a[0], w}, value(m*k))[0]
	b := add(device.BatchNorm, []int{m, k}, []device.Ref{y, wide[0], wide[1]}, value(m*k), value(k), value(k))
	dy := add(device.BatchNormGrad, []int{m, k}, []device.Ref{y, b[0], wide[0], b[1], b[2]}, value(m*k),
		gradient(wide[0]), gradient(wide[1]))[0]
	da := add(device.ConvGradX, conv, []device.Ref{dy, w}, value(m*c))[0]
	add(device.ConvGradW, conv, []device.Ref{a[0], dy}, gradient(w))
	add(device.BatchNormReLUGrad, []int{m, c}, []device.Ref{x, a[0], da, narrow[0], a[1], a[2]}, value(m*c),
		gradient(narrow[0]), gradient(narrow[1]))
	return code
}

// faultyFused is a fake GPU on which fused kernels do not work: fault is what happens when one
// runs, refuse what the driver says when one is launched.
func faultyFused(t *testing.T, fault func(l fakegpu.Launch) error, refuse driver.Result) (*fakegpu.Machine, backend) {
	m, b := fakeBackend(t, fakegpu.Options{})
	withMultiprocessors(b.api, 1)
	host, err := hostrun.Open()
	if err != nil {
		t.Fatal(err)
	}
	byName, handles := map[string]*kernels.Kernel{}, map[driver.Function]string{}
	for _, k := range kernels.All() {
		byName[k.Name] = k
	}
	m.SetKernels(func(name string) (int, bool) { return len(byName[name].Params), true }, func(l fakegpu.Launch) error {
		if fault != nil && strings.HasPrefix(l.Kernel, "pointwise_") {
			return fault(l)
		}
		return host.Launch(nil, kernels.Call{Kernel: byName[l.Kernel], Launch: kernels.Launch{Grid: l.Grid,
			Block: l.Block, Shared: l.Shared}, Args: l.Args})
	})
	find, launch := b.api.ModuleGetFunction, b.api.LaunchKernel
	b.api.ModuleGetFunction = func(f *driver.Function, in driver.Module, name *byte) driver.Result {
		r := find(f, in, name)
		handles[*f] = dynlib.String(uintptr(unsafe.Pointer(name)))
		return r
	}
	b.api.LaunchKernel = func(f driver.Function, grid, block [3]uint32, shared uint32, s driver.Stream,
		args []unsafe.Pointer) driver.Result {
		if refuse != driver.Success && strings.HasPrefix(handles[f], "pointwise_") {
			return refuse
		}
		return launch(f, grid, block, shared, s, args)
	}
	return m, b
}

// A fused kernel that computes wrongly, or that the driver refuses, is not used, and the program
// says why. One that loses the GPU ends the program with an error that says how to do without, and
// the next one does. The self-test finds each.
func TestFaultyFusedKernels(t *testing.T) {
	for _, c := range []struct {
		what   string
		fault  func(l fakegpu.Launch) error
		refuse driver.Result
		route  string
		lost   bool
	}{
		{"works", nil, driver.Success, "", false},
		{"writes nothing", func(fakegpu.Launch) error { return nil }, driver.Success, "differ from those of separate",
			false},
		{"is refused", nil, driver.InvalidValue, "invalid value", false},
		{"has too little memory", nil, driver.LaunchOutOfResources, "shared memory", false},
		{"reads anywhere", func(fakegpu.Launch) error { return fmt.Errorf("an illegal address") }, driver.Success, "",
			true},
	} {
		t.Run(c.what, func(t *testing.T) {
			_, b := faultyFused(t, c.fault, c.refuse)
			d, err := open(b, WithPrecision(FP16), Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			kinds, bad := 0, 0
			if _, err := d.TryFused(linkedStep(), func(what string, far float64, err error) {
				if kinds++; err != nil {
					bad++
				} else if far > 1e-6 {
					t.Errorf("%s: %v, want less on a fake", what, far)
				}
			}); driver.Lost(err) != c.lost {
				t.Errorf("%v", err)
			}
			if works := c.what == "works"; works && (kinds != 4 || bad != 0) || !works && (bad != kinds || bad == 0) {
				t.Errorf("%d of %d kinds of kernels fail", bad, kinds)
			}
			_, b = faultyFused(t, c.fault, c.refuse)
			if _, err := loadLinked(t, b, c.route); driver.Lost(err) != c.lost || (err != nil) != c.lost {
				t.Fatal(err)
			} else if c.lost && !strings.Contains(err.Error(), FusedVariable+"=0") {
				t.Errorf("%v, want an error that names %s", err, FusedVariable)
			}
			t.Setenv(FusedVariable, "0")
			_, b = faultyFused(t, c.fault, c.refuse)
			if fused, err := loadLinked(t, b, ""); err != nil || fused != 0 {
				t.Errorf("without fused kernels: %v, %d are used", err, fused)
			}
		})
	}
}

// Each fused kernel that loses the GPU does so once: later processes find in the cache that it did,
// and use separate kernels in its place.
func TestLostFusedKernels(t *testing.T) {
	dir, losses := t.TempDir(), map[string]bool{}
	for {
		_, b := faultyFused(t, func(fakegpu.Launch) error { return fmt.Errorf("an illegal address") }, driver.Success)
		made := b.libraries
		b.libraries = func(p driver.Properties) (libraries, error) {
			l, err := made(p)
			l.choicesDir = dir
			return l, err
		}
		_, err := loadLinked(t, b, "did not return")
		if err == nil {
			break
		}
		if !driver.Lost(err) || losses[err.Error()] {
			t.Fatalf("%v, after %d other losses", err, len(losses))
		}
		losses[err.Error()] = true
	}
	if len(losses) < 2 {
		t.Errorf("%d losses, want one of each kind of kernel", len(losses))
	}
}

// loadLinked loads code on a GPU that measures, and returns how many convolutions are fused. If
// route is not empty, none is to be, for that reason.
func loadLinked(t *testing.T, b backend, route string) (fused int, err error) {
	t.Helper()
	d, err := open(b, WithPrecision(FP16))
	if err != nil {
		return 0, err
	}
	defer d.Close()
	p, err := d.Load(linkedStep())
	if err != nil {
		return 0, err
	}
	routes := p.(*Program).Routes()
	if route != "" && (fusedRoutes(p) != 0 || !strings.Contains(strings.Join(routes, "\n"), route)) {
		t.Errorf("want separate kernels because of %q:\n%s", route, strings.Join(routes, "\n"))
	}
	return fusedRoutes(p), nil
}

// The self-test runs every kind of fused kernel of a ResNet-50, and leaves the check out in
// float32.
func TestSelftestOfFusedKernels(t *testing.T) {
	for precision, want := range map[Precision]string{BF16: "ok", FP32: "left out"} {
		d, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(precision), Deterministic(true))
		target := selftest.Target{Device: d, Precision: string(precision), Small: true}
		which := selftest.Selection{Only: "fused/"}
		r, err := target.Run(context.Background(), which, func(r selftest.Result) { t.Log(r) })
		if err != nil || len(r.Results) != 1 || r.Results[0].Verdict != want {
			t.Errorf("%s: %+v, %v, want %s", precision, r.Results, err, want)
		}
	}
}
