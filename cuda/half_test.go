package cuda

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/cuda/compiler"
	"fspda/device"
	"fspda/device/devicetest"
	"fspda/dist"
	"fspda/internal/rng"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/selftest"
)

// exampleNetworks is networks with all layers, for a batch of four and images of three channels.
func exampleNetworks(t *testing.T) map[string]*model.Network {
	t.Helper()
	all := map[string]*model.Network{}
	for name, o := range map[string]model.Options{
		"mlp": {Shape: []int{6, 6, 1}, Classes: 4, Hidden: []int{9, 7},
			Loss: model.LossOptions{WeightDecay: 1e-3}},
		"resnet20": {Shape: []int{8, 8, 3}, Classes: 4, Loss: model.LossOptions{WeightDecay: 1e-3}},
	} {
		net, err := model.Open(name, o)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = net
	}
	return all
}

func exampleBatch(net *model.Network) device.Batch {
	b := device.Batch{X: make([]float32, 4*net.Inputs()), Y: []int32{0, 1, 2, 3}}
	s := rng.New(1, "networks")
	for i := range b.X {
		b.X[i] = float32(s.Norm())
	}
	return b
}

// distance returns the distance of two gradients, relative to the length of the second.
func distance(got, want []float32) float64 {
	far, long := 0.0, 0.0
	for i, v := range want {
		far, long = far+math.Pow(float64(got[i])-float64(v), 2), long+float64(v)*float64(v)
	}
	return math.Sqrt(far / long)
}

// roundedParameters is a device on which programs see parameters of 16 bits.
type roundedParameters struct {
	device.Device
	round func([]float32)
}

func (r roundedParameters) Write(dst device.Vector, src []float32) {
	src = slices.Clone(src)
	r.round(src)
	r.Device.Write(dst, src)
}

// Networks of 16 bits have the CPU's gradient up to a multiple of the difference that rounding the
// parameters makes: activations are rounded as often.
func TestHalfNetworks(t *testing.T) {
	for precision, bounds := range map[Precision]struct {
		round func([]float32)
		unit  float64
	}{FP16: {dist.FP16.Round, 0x1p-11}, BF16: {dist.BF16.Round, 0x1p-8}} {
		d, m := openFake(t, fakegpu.Options{}, false, WithPrecision(precision))
		apart, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(precision), withoutGroups)
		for name, net := range exampleNetworks(t) {
			b := exampleBatch(net)
			want, wantLoss := gradientOf(t, net, cpu.New(), b)
			rounded, _ := gradientOf(t, net, roundedParameters{cpu.New(), bounds.round}, b)
			got, loss := gradientOf(t, net, d, b)
			if name == "mlp" {
				by, _ := gradientOf(t, net, apart, b)
				if !(distance(by, want) <= 8*distance(rounded, want)) {
					t.Errorf("%s, %s without groups: the gradient differs by %.2g of its length", precision, name,
						distance(by, want))
				}
				mixed, err := net.WithMixed()
				if err != nil {
					t.Fatal(err)
				}
				if of, _ := gradientOf(t, mixed, d, b); !slices.Equal(of, by) {
					t.Errorf("%s, %s: with a loss of two classes, the gradient has other bits", precision, name)
				}
				if again, _ := gradientOf(t, net, d, b); !slices.Equal(got, again) {
					t.Errorf("%s, %s: a second gradient has other bits", precision, name)
				}
			}
			times := map[string]float64{"mlp": 8, "resnet20": 2}[name]
			far, limit := distance(got, want), times*distance(rounded, want)
			t.Logf("%s, %s: gradient differs by %.2g of its length, rounded parameters by %.2g; loss %v and %v",
				precision, name, far, limit/times, loss, wantLoss)
			if !(far <= limit && limit <= 1) || !(math.Abs(loss-wantLoss) <= 4*bounds.unit*wantLoss) {
				t.Errorf("%s, %s: the gradient differs by %.2g of its length, want %.2g at most; loss %v, want %v",
					precision, name, far, limit, loss, wantLoss)
			}
		}
		if m.Count("GraphLaunch") == 0 {
			t.Error("no graph was launched")
		}
	}
}

// Bytes become the same 16-bit numbers as the float32 that they stand for, with and without padded
// channels, and without float32 in between.
func TestHalfBytes(t *testing.T) {
	t.Run("in groups", func(t *testing.T) { checkHalfBytes(t, "mlp") })
	t.Run("without groups", func(t *testing.T) { checkHalfBytes(t, "", withoutGroups) })
}

// checkHalfBytes tests one network, or all.
func checkHalfBytes(t *testing.T, only string, options ...Option) {
	d, _ := openFake(t, fakegpu.Options{}, false, append(options, WithPrecision(FP16))...)
	for name, net := range exampleNetworks(t) {
		if only != "" && name != only {
			continue
		}
		plan, err := net.Plan(4, model.Train)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := d.compile(plan.Code()); err != nil || !p.ConvertsToHalf(1) {
			t.Errorf("%s: bytes go through float32 (%v)", name, err)
		}
		for _, channels := range map[string][]int{"mlp": {1}, "resnet20": {3}}[name] {
			b := device.Batch{Bytes: make([]uint8, 4*net.Inputs()), Y: []int32{0, 1, 2, 3},
				Scale: []float32{0.02, 0.015, 0.01}[:channels], Shift: []float32{-2, -1.5, 0.5}[:channels]}
			s := rng.New(2, "bytes")
			for i := range b.Bytes {
				b.Bytes[i] = uint8(s.IntN(256))
			}
			numbers := device.Batch{X: b.Numbers(nil, net.Inputs()), Y: b.Y}
			want, wantLoss := gradientOf(t, net, d, numbers)
			got, loss := gradientOf(t, net, d, b)
			if loss != wantLoss || !slices.Equal(got, want) {
				t.Errorf("%s, %d channels: loss %v of bytes, want %v; gradient differs by %.2g", name, channels, loss,
					wantLoss, distance(got, want))
			}
		}
	}
}

// Every kernel of a 16-bit program is within the bounds of its roundings, with and without casts of
// its operands, as fspda selftest checks it on a GPU.
func TestHalfKernels(t *testing.T) {
	for _, p := range []Precision{FP16, BF16} {
		d, _ := openFake(t, fakegpu.Options{}, true, WithPrecision(p))
		target := selftest.Target{Device: d, Precision: string(p), Small: os.Getenv("FSPDA_LONG") == ""}
		only := string(p) + "/,networks/mlp by,nano by,tokens by,vocabulary by"
		if p == BF16 && target.Small {
			only = string(p) + "/,networks/mlp by"
		}
		r, err := target.Run(context.Background(), selftest.Selection{Only: only}, func(selftest.Result) {})
		if err != nil || len(r.Results) < len(device.Kernels()) {
			t.Errorf("%s: %d checks, %v", p, len(r.Results), err)
		}
		for _, c := range r.Results {
			if c.Verdict != "ok" {
				t.Error(c)
			}
		}
	}
}

// The gradient of attention is within its bounds in shapes of several rows, whose shares the kernel
// computes of the rounded inputs. Short runs of TestHalfKernels have a shape of one row only.
// FSPDA_LONG=1 also computes it in bf16.
func TestHalfAttentionGradient(t *testing.T) {
	for p, bounds := range map[Precision]devicetest.HalfPrecision{
		FP16: {Round: dist.FP16.Round, Unit: 0x1p-11, Smallest: 0x1p-24},
		BF16: {Round: dist.BF16.Round, Unit: 0x1p-8, Smallest: 0x1p-126},
	} {
		if p == BF16 && os.Getenv("FSPDA_LONG") == "" {
			continue
		}
		d, _ := openFake(t, fakegpu.Options{}, true, WithPrecision(p))
		devicetest.CheckHalfPrecision(t, d, device.AttentionGrad, bounds)
	}
}

// GPUs below compute capability 8.0 compute attention in float32, from 16 bits.
func TestHalfAttentionInFloat32(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{CC: 70}, true, WithPrecision(FP16))
	target := selftest.Target{Device: d, Precision: string(FP16), Small: true}
	r, err := target.Run(context.Background(), selftest.Selection{Only: "fp16/attention"}, func(selftest.Result) {})
	if err != nil || len(r.Results) < 4 || r.Failed > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Language models with a large vocabulary, whose logits have 16 bits and padded rows, have the
// CPU's gradient as far as those with float32 logits have it. FSPDA_LONG=1 computes each network in
// both precisions, else one in each.
func TestWideVocabulary(t *testing.T) {
	for precision, bound := range map[Precision]float64{FP16: 1e-3, BF16: 8e-3} {
		d, _ := openFake(t, fakegpu.Options{}, true, WithPrecision(precision))
		for _, name := range []string{"gpt-nano", "llama-nano"} {
			if os.Getenv("FSPDA_LONG") == "" && (name == "gpt-nano") != (precision == FP16) {
				continue
			}
			for classes, wide := range map[int]int{2061: 2112, 2047: 0} {
				net, err := model.Open(name, model.Options{Classes: classes,
					Transformer: model.Transformer{Layers: 1, Heads: 2, Width: 16, Block: 9}})
				if err != nil {
					t.Fatal(err)
				}
				b := device.Batch{X: make([]float32, 18), Y: make([]int32, 18), Length: 9}
				for i := range b.X {
					b.X[i], b.Y[i] = float32(i*113%classes), int32((i*57+classes-1)%classes)
				}
				want, wantLoss := gradientOf(t, net, cpu.New(), b)
				for _, piece := range []int{0, 7 * 2 * 2112} { // all rows, and six at a time
					if piece > 0 && wide == 0 {
						continue
					}
					d.lossPiece = piece
					got, loss := gradientOf(t, net, d, b)
					off := distance(got, want)
					what := fmt.Sprintf("%s %s of %d classes, pieces of %d bytes", precision, name, classes, piece)
					t.Logf("%s: the gradient differs by %.2g, loss %v, want %v", what, off, loss, wantLoss)
					if !(off <= bound) || !(math.Abs(loss-wantLoss) <= bound*wantLoss/10) {
						t.Errorf("%s: the gradient differs by %.2g of its length, want %v; loss %v, want %v", what, off,
							bound, loss, wantLoss)
					}
					checkWide(t, d, net, wide, piece)
				}
			}
		}
	}
}

// checkWide checks the padded length of rows of logits, and that they are in pieces.
func checkWide(t *testing.T, d *Device, net *model.Network, wide, piece int) {
	t.Helper()
	code, err := net.Plan(2, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := d.compile(code.Code())
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, task := range plan.Tasks {
		if task.Vocabulary > 0 {
			found = append(found, task.Vocabulary)
		}
	}
	want := slices.Repeat([]int{wide}, 4) // the product, the loss, and two gradients
	if wide == 0 {
		want = nil
	} else if piece > 0 {
		want = want[:1] // all in one
	}
	if !slices.Equal(found, want) {
		t.Errorf("rows of logits have %v numbers, want %v", found, want)
	}
}

// steep is code whose gradient, times the first loss scale, exceeds fp16: one row of three logits,
// with a decay of the weights.
func steep() (code *device.Code, params []float32, b device.Batch) {
	at := func(s device.Space, off, n int) device.Ref { return device.Ref{Space: s, Off: off, Len: n} }
	x, w, bias := at(device.Input, 0, 2), at(device.Params, 0, 6), at(device.Params, 6, 3)
	logits, dlogits, loss := at(device.Arena, 0, 3), at(device.Arena, 16, 3), at(device.Arena, 32, 1)
	return &device.Code{Name: "steep", Batch: 1, Features: 2, Dim: 9, Arena: 48, Gradient: true,
		Calls: []device.Call{
			{Kernel: device.Linear, In: []device.Ref{x, w, bias}, Out: []device.Ref{logits}, Dims: []int{1, 3, 2}},
			{Kernel: device.SoftmaxCrossEntropy, In: []device.Ref{logits, at(device.Labels, 0, 1)},
				Out: []device.Ref{loss, dlogits}, Dims: []int{1, 3}},
			{Kernel: device.LinearGradWDecay, In: []device.Ref{x, dlogits, w}, Out: []device.Ref{at(device.Grads, 0, 6),
				at(device.Grads, 6, 3)}, Dims: []int{1, 3, 2}, Attr: 0.5},
		},
		Results: []device.Result{{Name: "loss", Ref: at(device.Arena, 32, 1)}},
	}, []float32{1, 2, 0.5, -1, 0, 0.25, 20, 0, 0}, device.Batch{X: []float32{1, 0.5}, Y: []int32{1}}
}

// A gradient that exceeds fp16 becomes zero and halves its loss scale; the next one equals the
// CPU's. bf16 has no loss scale. It is so in batch groups and without.
func TestLossScale(t *testing.T) {
	t.Run("in groups", func(t *testing.T) { checkLossScale(t) })
	t.Run("without groups", func(t *testing.T) { checkLossScale(t, withoutGroups) })
}

func checkLossScale(t *testing.T, options ...Option) {
	code, params, b := steep()
	run := func(d device.Device, x, g device.Vector) []float32 {
		p, err := d.Load(code)
		if err != nil {
			t.Fatal(err)
		}
		out, grad := make([]float64, 1), make([]float32, code.Dim)
		if err := p.Run(x, g, b, out); err != nil {
			t.Fatal(err)
		}
		d.Read(grad, g)
		if !(math.Abs(out[0]-22) <= 0.5) {
			t.Errorf("loss %v", out[0])
		}
		return grad
	}
	open := func(d device.Device) (x, g device.Vector) {
		x, g = d.NewVector(code.Dim), d.NewVector(code.Dim)
		d.Write(x, params)
		return x, g
	}
	host := cpu.New()
	x, g := open(host)
	want := run(host, x, g)

	d, _ := openFake(t, fakegpu.Options{}, false, append(options, WithPrecision(FP16))...)
	x, g = open(d)
	for i, c := range []struct {
		grad  []float32
		scale device.LossScale
	}{{make([]float32, code.Dim), device.LossScale{Scale: 32768, Skipped: 1}}, {want, device.LossScale{Scale: 32768,
		Good: 1, Skipped: 1}}, {want, device.LossScale{Scale: 32768, Good: 2, Skipped: 1}}} {
		got := run(d, x, g)
		if s, ok := d.LossScale(g); !ok || s != c.scale {
			t.Errorf("run %d: loss scale %+v, want %+v", i, s, c.scale)
		}
		if i == 0 && !slices.Equal(got, c.grad) || !(distance(got, want) <= 1e-3) && i > 0 {
			t.Errorf("run %d: gradient %v, want %v", i, got, c.grad)
		}
	}
	if _, ok := d.LossScale(x); ok {
		t.Error("parameters have a loss scale")
	}
	_, og := open(d)
	if got := run(d, x, og); !slices.Equal(got, make([]float32, code.Dim)) {
		t.Errorf("another gradient begins with the scale of the first: gradient %v", got)
	}
	to := device.LossScale{Scale: 1024, Good: 7, Skipped: 3}
	d.SetLossScale(og, to)
	got := run(d, x, og)
	to.Good++
	if s, _ := d.LossScale(og); s != to || !(distance(got, want) <= 1e-3) {
		t.Errorf("with a scale that was set: %+v, want %+v; gradient %v, want %v", s, to, got, want)
	}

	d, _ = openFake(t, fakegpu.Options{}, false, append(options, WithPrecision(BF16))...)
	x, g = open(d)
	if got := run(d, x, g); !(distance(got, want) <= 1e-2) {
		t.Errorf("bf16: gradient %v, want %v", got, want)
	}
	if _, ok := d.LossScale(g); ok {
		t.Error("bf16 has a loss scale")
	}
}

// Code that 16 bits do not support returns an error that names the call and gives advice.
func TestHalfRefusals(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(*device.Code)
		want  string
	}{
		"a part of a value": {func(c *device.Code) {
			c.Calls[1].In[0], c.Calls[1].Out[1], c.Calls[1].Dims = device.Ref{Space: device.Arena, Off: 1,
				Len: 2}, device.Ref{Space: device.Arena, Off: 16, Len: 2}, []int{1, 2}
			c.Calls = c.Calls[:2]
		}, "call 1, softmax-cross-entropy: input 0: arena[1:3] is a part of what was computed at arena[0:3]"},
		"nothing": {func(c *device.Code) { c.Calls[0].In[0] = device.Ref{Space: device.Arena, Off: 4, Len: 2} },
			"nothing was computed at arena[4:6]"},
		"a scaled result": {func(c *device.Code) { c.Results[0].Ref.Off = 16 },
			"result and comes from the gradient of the loss"},
	} {
		d, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(FP16))
		code, _, _ := steep()
		c.spoil(code)
		if _, err := d.Load(code); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", what, err, c.want)
		}
	}
	_, p := fakeBackend(t, fakegpu.Options{CC: 70})
	for precision, instead := range map[Precision]Precision{BF16: FP16, TF32: FP32} {
		if _, err := open(p, WithPrecision(precision)); err == nil ||
			!strings.HasSuffix(err.Error(), "want 8.0 or newer: use precision "+string(instead)) {
			t.Errorf("%s on compute capability 7.0: error %v", precision, err)
		}
	}
	if _, err := open(p, WithPrecision("fp8")); err == nil || !strings.Contains(err.Error(), "fp32 tf32 fp16 bf16") {
		t.Errorf("precision fp8: error %v", err)
	}
}

// Activations of 16 bits take half the memory.
func TestHalfFootprint(t *testing.T) {
	net := exampleNetworks(t)["resnet20"]
	plan, err := net.Plan(128, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	arena := func(p Precision) int {
		made, err := compiler.Compile(plan.Code(), compiler.Options{Precision: p})
		if err != nil {
			t.Fatal(err)
		}
		return made.Arena
	}
	shadows := 2 * net.Dim()
	if long, short := arena(FP32), arena(FP16); float64(short) > 0.51*float64(long)+float64(shadows) {
		t.Errorf("%d bytes in fp32 and %d in fp16, of which %d are for parameters", long, short, shadows)
	}
}
