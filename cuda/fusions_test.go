package cuda

import (
	"slices"
	"testing"

	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// withoutFusion runs the calls of code as they are.
func withoutFusion(d *Device) error {
	d.noFusion = true
	return nil
}

// runStep returns all results of one step of a network, with moving buffers.
func runStep(t *testing.T, net *model.Network, d *Device) []float32 {
	t.Helper()
	made, err := net.Plan(4, model.Step)
	if err != nil {
		t.Fatal(err)
	}
	code := made.Code()
	p, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	x, grad, buffers := d.NewVector(code.Dim), d.NewVector(code.Dim), d.NewVector(code.Buffers)
	d.Write(x, net.Init(1))
	d.Write(buffers, slices.Repeat([]float32{0.5}, code.Buffers))
	out := make([]float64, len(code.Results))
	if err := p.(*Program).RunBuffered(x, grad, buffers, 0.1, exampleBatch(net), out); err != nil {
		t.Fatal(err)
	}
	all := make([]float32, code.Dim+code.Buffers)
	d.Read(all[:code.Dim], grad)
	d.Read(all[code.Dim:], buffers)
	for _, v := range out {
		all = append(all, float32(v))
	}
	return all
}

// Fusions change no bit of a step's gradient, buffers and loss, with and without recomputed
// activations.
func TestFusionsKeepBits(t *testing.T) {
	for _, c := range []struct {
		precision Precision
		recompute model.Recompute
		decay     model.Decay
	}{{FP32, model.RecomputeBlocks, model.DecayAll}, {FP16, model.RecomputeNone, model.DecayAll}, {BF16,
		model.RecomputeBlocks, model.DecayWeights}} {
		net, err := model.ResNet(model.ResNetOptions{Depth: 20, Height: 4, Width: 4, Classes: 4, BaseWidth: 8,
			WeightDecay: 1e-3, Decay: c.decay, Recompute: c.recompute})
		if err != nil {
			t.Fatal(err)
		}
		found, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(c.precision))
		asWritten, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(c.precision), withoutFusion)
		got, want := runStep(t, net, found), runStep(t, net, asWritten)
		if !slices.Equal(got, want) || slices.Max(want) == 0 {
			t.Errorf("%s, recompute %s, decay %s: the step differs by %.2g of its length", c.precision, c.recompute,
				c.decay, distance(got, want))
		}
	}
}
