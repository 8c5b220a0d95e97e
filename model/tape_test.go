package model_test

import (
	"math"
	"strings"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"

	"fspda/cpu"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
)

// perceptron is 6-5-7 with sigmoids, in Gorgonia's operations.
func perceptron(param model.Param, x *gorgonia.Node) *gorgonia.Node {
	h := gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(x, param("w1", 6, 5))), param("b1", 5), nil,
		[]byte{0}))
	h = gorgonia.Must(gorgonia.Sigmoid(h))
	return gorgonia.Must(gorgonia.BroadcastAdd(gorgonia.Must(gorgonia.Mul(h, param("w2", 5, 7))), param("b2", 7), nil,
		[]byte{0}))
}

// tapeBatch is a batch for this test.
func tapeBatch(n int, key uint64) device.Batch {
	s := rng.New(1, "tape test", key)
	b := device.Batch{X: make([]float32, 6*n), Y: make([]int32, n)}
	for i := range b.X {
		b.X[i] = float32(s.Norm())
	}
	for i := range b.Y {
		b.Y[i] = int32(s.Uint64() % 7)
	}
	return b
}

// turned converts the vector of two layers with weights inputs × outputs, as in perceptron, to
// weights outputs × inputs, as in an MLP.
func turned(v []float32, inputs, outputs [2]int) []float32 {
	var out []float32
	for l, rows := range inputs {
		for c := range outputs[l] {
			for r := range rows {
				out = append(out, v[r*outputs[l]+c])
			}
		}
		v = v[rows*outputs[l]:]
		out = append(out, v[:outputs[l]]...)
		v = v[outputs[l]:]
	}
	return out
}

// A network in Gorgonia's operations has the losses, gradients and scores of the same MLP,
// repeatedly and concurrently.
func TestTapeIsTheNetwork(t *testing.T) {
	dev := cpu.New()
	const decay = 0.01
	tape, err := model.NewTape(dev, model.TapeOptions{Inputs: 6, Classes: 7, WeightDecay: decay, Forward: perceptron})
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: 6, Hidden: []int{5}, Classes: 7, WeightDecay: decay})
	if err != nil {
		t.Fatal(err)
	}
	engine := model.NewEngine(net, dev)
	if tape.Dim() != net.Dim() {
		t.Fatalf("%d parameters, want %d", tape.Dim(), net.Dim())
	}
	var all sync.WaitGroup
	for k := range uint64(4) {
		all.Go(func() {
			for round := range uint64(3) {
				b := tapeBatch(3+int(round), 10*k+round)
				params := tape.Init(k)
				for i := range params {
					params[i] += 0.1 * float32(i%3)
				}
				x, grad := dev.NewVector(tape.Dim()), dev.NewVector(tape.Dim())
				y, want := dev.NewVector(tape.Dim()), dev.NewVector(tape.Dim())
				dev.Write(x, params)
				dev.Write(y, turned(params, [2]int{6, 5}, [2]int{5, 7}))
				loss, err := tape.Grad(grad, x, b)
				wantLoss, wantErr := engine.Grad(want, y, b)
				if err != nil || wantErr != nil || math.Abs(loss-wantLoss) > 1e-5*wantLoss {
					t.Errorf("loss %v, %v; want %v, %v", loss, err, wantLoss, wantErr)
					return
				}
				g, w := make([]float32, tape.Dim()), make([]float32, tape.Dim())
				dev.Read(g, grad)
				dev.Read(w, want)
				for i, v := range turned(g, [2]int{6, 5}, [2]int{5, 7}) {
					if math.Abs(float64(v-w[i])) > 1e-5 {
						t.Errorf("gradient %d is %v, want %v", i, v, w[i])
						return
					}
				}
				l, h, h5, err := tape.Score(x, b)
				wl, wh, wh5, _ := engine.Score(y, b)
				if err != nil || math.Abs(l-wl) > 1e-4 || h != wh || h5 != wh5 {
					t.Errorf("score %v %v %v, %v; want %v %v %v", l, h, h5, err, wl, wh, wh5)
				}
			}
		})
	}
	all.Wait()
}

// Errors of Gorgonia or Tape are reported when the network is made, with the reason.
func TestTapeRefuses(t *testing.T) {
	linear := func(param model.Param, x *gorgonia.Node) *gorgonia.Node {
		return gorgonia.Must(gorgonia.Mul(x, param("w", 6, 7)))
	}
	for name, c := range map[string]struct {
		o    model.TapeOptions
		want string
	}{
		"no forward": {model.TapeOptions{Inputs: 6, Classes: 7}, "a Forward"},
		"one class":  {model.TapeOptions{Inputs: 6, Classes: 1, Forward: linear}, "1 classes"},
		"no parameter": {model.TapeOptions{Inputs: 6, Classes: 6,
			Forward: func(_ model.Param, x *gorgonia.Node) *gorgonia.Node { return x }}, "param"},
		"wrong width":  {model.TapeOptions{Inputs: 5, Classes: 7, Forward: linear}, "hape"},
		"wrong logits": {model.TapeOptions{Inputs: 6, Classes: 8, Forward: linear}, "(2, 8)"},
		"an empty shape": {model.TapeOptions{Inputs: 6, Classes: 7,
			Forward: func(p model.Param, x *gorgonia.Node) *gorgonia.Node {
				return gorgonia.Must(gorgonia.Mul(x, p("w", 6, 0)))
			}}, "at least 1"},
		"one name twice": {model.TapeOptions{Inputs: 6, Classes: 6,
			Forward: func(p model.Param, x *gorgonia.Node) *gorgonia.Node {
				return gorgonia.Must(gorgonia.Mul(gorgonia.Must(gorgonia.Mul(x, p("w", 6, 6))), p("w", 6, 6)))
			}}, "a unique name"},
	} {
		if _, err := model.NewTape(cpu.New(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something about %q", name, err, c.want)
		}
	}
	tape, err := model.NewTape(cpu.New(), model.TapeOptions{Inputs: 6, Classes: 7, Forward: linear})
	if err != nil {
		t.Fatal(err)
	}
	v := cpu.New().NewVector(tape.Dim())
	if _, err := tape.Grad(v, v, device.Batch{X: make([]float32, 5), Y: []int32{1}}); err == nil {
		t.Error("a batch of another width was taken")
	}
}
