package model_test

import (
	"math"
	"slices"
	"sync"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/model"
)

// answer holds all results of an Engine for one batch.
type answer struct {
	loss, ce, hits float64
	grad           []float32
}

func ask(t *testing.T, e *model.Engine, dev device.Device, x device.Vector, batch int) (a answer) {
	b := device.Batch{X: make([]float32, batch*e.Inputs()), Y: make([]int32, batch)}
	for i := range b.X {
		b.X[i] = float32(math.Sin(float64(i*batch + 1)))
	}
	for i := range b.Y {
		b.Y[i] = int32((i + batch) % e.Classes())
	}
	g := dev.NewVector(e.Dim())
	var err error
	if a.loss, err = e.Grad(g, x, b); err != nil {
		t.Error(err)
	}
	if a.ce, a.hits, _, err = e.Score(x, b); err != nil {
		t.Error(err)
	}
	a.grad = make([]float32, e.Dim())
	dev.Read(a.grad, g)
	return a
}

// Concurrent calls with several batch sizes and kinds return the same bits as serial calls.
func TestEngineIsConcurrent(t *testing.T) {
	net, err := model.MLP(model.MLPOptions{Inputs: 8, Classes: 4, Hidden: []int{12}, WeightDecay: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	x := dev.NewVector(net.Dim())
	dev.Write(x, net.Init(1))
	sizes := []int{1, 5, 16}
	want := map[int]answer{}
	for _, batch := range sizes {
		want[batch] = ask(t, model.NewEngine(net, dev), dev, x, batch)
	}
	shared := model.NewEngine(net, dev)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			batch := sizes[i%len(sizes)]
			got, want := ask(t, shared, dev, x, batch), want[batch]
			if got.loss != want.loss || got.ce != want.ce || got.hits != want.hits ||
				!slices.Equal(got.grad, want.grad) {
				t.Errorf("batch %d: another answer than alone", batch)
			}
		})
	}
	wg.Wait()
	if got := shared.Describe().Sizes(); !slices.Equal(got, []int{96, 12, 48, 4}) {
		t.Errorf("sizes %v", got)
	}
}

// An invalid label is an error, and the engine remains usable.
func TestEngineRefusesLabel(t *testing.T) {
	net, err := model.MLP(model.MLPOptions{Inputs: 3, Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	e := model.NewEngine(net, dev)
	x, g := dev.NewVector(net.Dim()), dev.NewVector(net.Dim())
	if _, err := e.Grad(g, x, device.Batch{X: make([]float32, 3), Y: []int32{2}}); err == nil {
		t.Error("label 2 of 2 classes was taken")
	}
	if _, err := e.Grad(g, x, device.Batch{X: make([]float32, 3), Y: []int32{1}}); err != nil {
		t.Error(err)
	}
}
