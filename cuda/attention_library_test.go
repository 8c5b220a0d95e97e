package cuda

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/cuda/driver"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// attentionNetwork returns a network with attention, and a batch of three windows.
func attentionNetwork(t *testing.T) (*model.Network, device.Batch) {
	t.Helper()
	o := model.Transformer{Layers: 1, Heads: 2, Width: 16, Block: 11}
	net, err := model.Open("gpt-nano", model.Options{Classes: 13, Transformer: o})
	if err != nil {
		t.Fatal(err)
	}
	b := device.Batch{Length: 11}
	for i := range 33 {
		b.X, b.Y = append(b.X, float32(i*7%13)), append(b.Y, int32(i*5%13))
	}
	return net, b
}

// gradientWithAttention computes a gradient on a GPU whose cuDNN has engines for attention, with a
// folder for choices. It returns how often an engine ran.
func gradientWithAttention(t *testing.T, dir string, options ...Option) (grad []float32, loss float64, attended int) {
	t.Helper()
	m, _ := fakeBackend(t, fakegpu.Options{})
	n := newFakeDNN(m)
	n.attention = true
	p := backendWith(m, n)
	plain := p.libraries
	p.libraries = func(g driver.Properties) (libraries, error) { l, err := plain(g); l.choicesDir = dir; return l, err }
	d, err := open(p, options...)
	if err != nil {
		t.Fatal(err)
	}
	net, b := attentionNetwork(t)
	grad, loss = gradientOf(t, net, d, b)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	m.CheckLeaks(t)
	if len(n.graph.Faults) > 0 || n.graph.Live() > 0 {
		t.Errorf("the graph API was used wrongly: %s; %d descriptors are left", strings.Join(n.graph.Faults, "; "),
			n.graph.Live())
	}
	return grad, loss, n.attended
}

// Attention is computed by the fastest engine of cuDNN that computes the numbers of the kernels. The
// choice is stored. In deterministic runs and in float32, kernels compute it.
func TestLibraryAttention(t *testing.T) {
	net, b := attentionNetwork(t)
	want, wantLoss := gradientOf(t, net, cpu.New(), b)
	const runs = 4 // two directions, sent once and captured once
	for _, c := range []struct {
		precision Precision
		options   []Option
		times     int
	}{{BF16, nil, runs}, {FP16, nil, runs}, {BF16, []Option{Deterministic(true)}, 0}, {FP32, nil, 0}} {
		dir := t.TempDir()
		options := append(c.options, WithPrecision(c.precision))
		grad, loss, tried := gradientWithAttention(t, dir, options...)
		again, _, ran := gradientWithAttention(t, dir, options...)
		if far := distance(grad, want); !(math.Abs(loss-wantLoss) <= 0.01*wantLoss) || !(far <= 0.05) {
			t.Errorf("%s: loss %v, want %v; the gradient differs by %.2g of its length", c.precision, loss, wantLoss,
				far)
		}
		if ran != c.times || c.times > 0 && tried <= ran {
			t.Errorf("%s: engines ran %d times with a trial, then %d times, want %d", c.precision, tried, ran, c.times)
		}
		if !slices.Equal(grad, again) {
			t.Errorf("%s: the stored choice has other bits", c.precision)
		}
	}
}
