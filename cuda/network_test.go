package cuda

import (
	"errors"
	"math"
	"slices"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// gradientOf returns the gradient of a network's initial parameters on a device: the last of three,
// which comes from a graph.
func gradientOf(t *testing.T, net *model.Network, d device.Device, b device.Batch) (grad []float32, loss float64) {
	t.Helper()
	m := model.NewEngine(net, d)
	x, g := d.NewVector(net.Dim()), d.NewVector(net.Dim())
	d.Write(x, net.Init(1))
	for range 3 {
		var err error
		if loss, err = m.Grad(g, x, b); err != nil {
			t.Fatal(err)
		}
	}
	grad = make([]float32, net.Dim())
	d.Read(grad, g)
	return grad, loss
}

// Networks have the CPU's gradient up to rounding.
func TestNetworks(t *testing.T) {
	d, m := openFake(t, fakegpu.Options{}, false)
	for _, c := range []struct {
		name  string
		shape []int
		bound float64 // the most distance, relative to the length

		frozen []string
		mixed  bool
	}{{"mlp", []int{6, 6, 1}, 1e-6, nil, false}, {"mlp", []int{6, 6, 1}, 1e-6, []string{"fc2"}, false},
		{"mlp", []int{6, 6, 1}, 1e-6, nil, true}, {"resnet20", []int{8, 8, 3}, 1e-3, nil, false},
		{"resnet20", []int{8, 8, 3}, 1e-3, []string{"*", "!fc"}, true}} {
		o := model.Options{Shape: c.shape, Classes: 4, Loss: model.LossOptions{WeightDecay: 1e-3}}
		if c.name == "mlp" {
			o.Hidden = []int{9, 7}
		}
		net, err := model.Open(c.name, o)
		if err != nil {
			t.Fatal(err)
		}
		if c.frozen != nil {
			if net, err = net.WithFactors(c.frozen, []model.Factor{{Pattern: "fc*", Factor: 3}}); err != nil {
				t.Fatal(err)
			}
		}
		b := device.Batch{X: make([]float32, 4*net.Inputs()), Y: []int32{0, 1, 2, 3}}
		if c.mixed {
			if net, err = net.WithMixed(); err != nil {
				t.Fatal(err)
			}
			b.Mix = []device.Mix{{Partner: 3, Weight: 0.3}, {Partner: 1, Weight: 0.5}, {Partner: 0, Weight: 1},
				{Partner: 2}}
		}
		s := rng.New(1, "networks")
		for i := range b.X {
			b.X[i] = float32(s.Norm())
		}
		want, wantLoss := gradientOf(t, net, cpu.New(), b)
		got, loss := gradientOf(t, net, d, b)
		again, _ := gradientOf(t, net, d, b)
		far, long := 0.0, 0.0
		for i, v := range want {
			far, long = far+math.Pow(float64(got[i]-v), 2), long+float64(v)*float64(v)
		}
		if !(math.Sqrt(far/long) <= c.bound) || !(math.Abs(loss-wantLoss) <= 1e-5*wantLoss) {
			t.Errorf("%s: the gradient differs by %.2g of its length, want %.2g at most; loss %v, want %v", c.name,
				math.Sqrt(far/long), c.bound, loss, wantLoss)
		}
		if !slices.Equal(got, again) {
			t.Errorf("%s: a second gradient has other bits", c.name)
		}
		if c.mixed {
			b.Mix[2].Partner = 4
			e := new(LabelError)
			_, err := model.NewEngine(net, d).Grad(d.NewVector(net.Dim()), d.NewVector(net.Dim()), b)
			if !errors.As(err, &e) || e.Row != 2 || e.Value != 4 {
				t.Errorf("%s: error %v of a second class 4 of row 2, which has 4 classes", c.name, err)
			}
		}
	}
	if m.Count("GraphLaunch") == 0 {
		t.Error("no graph was launched")
	}
}
