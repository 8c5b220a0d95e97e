package cuda

import (
	"os"
	"strings"
	"testing"

	"fspda/cuda/driver"
	"fspda/cuda/driver/fakegpu"
	"fspda/device"
	"fspda/model"
)

// fuseConvolutions fuses every linked convolution without timing.
func fuseConvolutions(d *Device) error {
	d.fuseAlways = true
	return nil
}

// fusedRoutes counts the convolutions of a program that are fused.
func fusedRoutes(p device.Program) int {
	return strings.Count(strings.Join(p.(*Program).Routes(), "\n"), ": fused")
}

// A step whose convolutions of 1×1 compute their normalisations, and four of them both gradients in
// a kernel, gives the results of one whose kernels are separate, except for the order of the sums
// in a convolution and of the statistics. On a fake GPU both convolutions round sums of float64. In
// fp16 a number that is rounded the other way changes the last norms, of four rows, by more.
func TestFusedConvolutionsKeepTheStep(t *testing.T) {
	for _, c := range []struct {
		precision Precision
		recompute model.Recompute
		width     int
		fused     int
		bound     float64
	}{{BF16, model.RecomputeBlocks, 8, 69, 1e-5}, {FP16, model.RecomputeNone, 16, 69 + 4, 1e-3}} {
		if c.width > 8 && os.Getenv("FSPDA_LONG") == "" {
			break
		}
		net, err := model.ResNet(model.ResNetOptions{Depth: 50, Height: 16, Width: 16, Classes: 4, BaseWidth: c.width,
			WeightDecay: 1e-3, Recompute: c.recompute})
		if err != nil {
			t.Fatal(err)
		}
		_, b := fakeBackend(t, fakegpu.Options{})
		withMultiprocessors(b.api, 1) // so that both gradients in one kernel move less, also here
		fused, err := open(b, WithPrecision(c.precision), fuseConvolutions, SeparateLaunches(true))
		if err != nil {
			t.Fatal(err)
		}
		defer fused.Close()
		separate, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(c.precision), Deterministic(true))
		if d := distance(runStep(t, net, fused), runStep(t, net, separate)); !(d <= c.bound) {
			t.Errorf("%s, recompute %s: the step differs by %.2g of its length, want at most %v", c.precision,
				c.recompute, d, c.bound)
		}
		for d, want := range map[*Device]int{fused: c.fused, separate: 0} {
			plan, err := net.Plan(4, model.Step)
			if err != nil {
				t.Fatal(err)
			}
			p, err := d.Load(plan.Code())
			if err != nil {
				t.Fatal(err)
			}
			if n := fusedRoutes(p); n != want {
				t.Errorf("%s: %d convolutions are fused, want %d", c.precision, n, want)
			}
		}
	}
}

// convAndNorm is a convolution of 1×1 whose output is normalised.
func convAndNorm() *device.Code {
	n, h, c, k := 2, 4, 16, 8
	x, w, y := n*h*h*c, k*c, n*h*h*k
	at := func(s device.Space, off, len int) device.Ref { return device.Ref{Space: s, Off: off, Len: len} }
	return &device.Code{Name: "convolution and norm", Batch: 1, Features: 1, Dim: x + w + 2*k, Arena: 2*y + 2*k,
		Calls: []device.Call{
			{Kernel: device.Conv, Dims: []int{n, h, h, c, k, 1, 1, 1, 0},
				In:  []device.Ref{at(device.Params, 0, x), at(device.Params, x, w)},
				Out: []device.Ref{at(device.Arena, 0, y)}},
			{Kernel: device.BatchNorm, Dims: []int{n * h * h, k}, Attr: 1e-5,
				In:  []device.Ref{at(device.Arena, 0, y), at(device.Params, x+w, k), at(device.Params, x+w+k, k)},
				Out: []device.Ref{at(device.Arena, y, y), at(device.Arena, 2*y, k), at(device.Arena, 2*y+k, k)}},
		}}
}

// A convolution is fused where that is faster, and the choice is stored; a deterministic device, one
// without tensor cores of 16 bits and one in float32 fuse nothing.
func TestFusionIsTimed(t *testing.T) {
	load := func(dir string, step float32, o fakegpu.Options, options ...Option) int {
		m, b := fakeBackend(t, o)
		b.api = m.API()
		clock := float32(1)
		b.api.EventElapsedTime = func(out *float32, _, _ driver.Event) driver.Result {
			clock *= step
			*out = clock
			return 0
		}
		made := b.libraries
		b.libraries = func(p driver.Properties) (libraries, error) {
			l, err := made(p)
			l.choicesDir = dir
			return l, err
		}
		d, err := open(b, options...)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		p, err := d.Load(convAndNorm())
		if err != nil {
			t.Fatal(err)
		}
		return fusedRoutes(p)
	}
	fp16 := WithPrecision(FP16)
	known := t.TempDir()
	for _, c := range []struct {
		what string
		got  int
		want int
	}{
		// the kernel that is fused is timed first
		{"later is slower", load(known, 1.5, fakegpu.Options{}, fp16), 1},
		{"later is faster", load(t.TempDir(), 0.5, fakegpu.Options{}, fp16), 0},
		{"it is known", load(known, 0.5, fakegpu.Options{}, fp16), 1},
		{"in bf16 it is not", load(known, 0.5, fakegpu.Options{}, WithPrecision(BF16)), 0},
		{"deterministic", load(known, 1.5, fakegpu.Options{}, fp16, Deterministic(true)), 0},
		{"V100", load(known, 1.5, fakegpu.Options{CC: 70}, fp16), 0},
		{"float32", load(known, 1.5, fakegpu.Options{}), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d convolutions are fused, want %d", c.what, c.got, c.want)
		}
	}
}
