package model_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/device"
	"fspda/model"
)

// buffered is an Engine of a small network with a model, a gradient vector and initial buffers.
type buffered struct {
	*model.Engine
	dev              device.Device
	x, grad, buffers device.Vector
}

func newBuffered(t *testing.T, name string) *buffered {
	t.Helper()
	o := model.Options{Shape: []int{6, 6, 3}, Classes: 4, Loss: model.LossOptions{WeightDecay: 0.01}}
	net, err := model.Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	b := &buffered{Engine: model.NewEngine(net, dev), dev: dev}
	b.x, b.grad, b.buffers = dev.NewVector(net.Dim()), dev.NewVector(net.Dim()), dev.NewVector(net.Buffers().Dim())
	dev.Write(b.x, net.Init(2))
	dev.Write(b.buffers, net.InitBuffers())
	return b
}

// batch makes n examples of different sizes and signs, selected by key.
func (b *buffered) batch(n, key int) device.Batch {
	d := device.Batch{X: make([]float32, n*b.Inputs()), Y: make([]int32, n)}
	for i := range d.X {
		d.X[i] = float32(math.Sin(float64((i+1)*(key+3))) * float64(1+i%(2+key)))
	}
	for i := range d.Y {
		d.Y[i] = int32((i + key) % b.Classes())
	}
	return d
}

func (b *buffered) read(v device.Vector) []float32 {
	host := make([]float32, v.Len())
	b.dev.Read(host, v)
	return host
}

// moments returns the mean and the unbiased variance of every channel, by two passes in float64.
func moments(rows []float32, channels int) (mean, variance []float64) {
	mean, variance = make([]float64, channels), make([]float64, channels)
	n := float64(len(rows) / channels)
	for i, v := range rows {
		mean[i%channels] += float64(v) / n
	}
	for i, v := range rows {
		d := float64(v) - mean[i%channels]
		variance[i%channels] += d * d / (n - 1)
	}
	return mean, variance
}

func TestBufferLayout(t *testing.T) {
	b := newBuffered(t, "resnet20")
	sizes := b.Describe().Buffers
	if len(sizes) != 2*21 || !slices.Equal(sizes[:2], []int{16, 16}) || !slices.Equal(sizes[40:], []int{64, 64}) {
		t.Errorf("buffers have the sizes %v", sizes)
	}
	for i, tensor := range b.Buffers().Tensors() {
		if what := []string{".running_mean", ".running_var"}[i%2]; !strings.HasSuffix(tensor.Name, what) {
			t.Errorf("buffer %d is %s, want a %s", i, tensor.Name, what)
		}
	}
}

// Observe moves the first buffers towards the moments of the first convolution's output, which here
// is the input, since its filters copy a channel.
func TestObserveTakesMoments(t *testing.T) {
	b := newBuffered(t, "resnet20")
	params := b.read(b.x)
	filters := b.Layout().View(params, "conv1.weight")
	clear(filters)
	for k := range 16 {
		filters[(k*9+4)*3+k%3] = 1 // the middle of the window
	}
	b.dev.Write(b.x, params)
	first, second := b.batch(5, 0), b.batch(3, 1)
	for _, batch := range []device.Batch{first, second} {
		if err := b.Observe(b.x, b.buffers, batch, 0.25); err != nil {
			t.Fatal(err)
		}
	}
	got := b.read(b.buffers)
	m1, v1 := moments(first.X, 3)
	m2, v2 := moments(second.X, 3)
	for k := range 16 {
		mean := 0.75*(0.25*m1[k%3]) + 0.25*m2[k%3]
		variance := 0.75*(0.75+0.25*v1[k%3]) + 0.25*v2[k%3]
		if math.Abs(float64(got[k])-mean) > 1e-6 || math.Abs(float64(got[16+k])-variance) > 1e-6*variance {
			t.Errorf("channel %d has mean %v and variance %v, want %v and %v", k, got[k], got[16+k], mean, variance)
		}
	}
}

// Step computes Grad's gradient and moves the buffers as Observe does with momentum 0.1. Grad and
// Score leave the buffers unchanged.
func TestStepIsGradAndObserve(t *testing.T) {
	b := newBuffered(t, "resnet20")
	batch := b.batch(4, 0)
	loss, err := b.Grad(b.grad, b.x, batch)
	if err != nil {
		t.Fatal(err)
	}
	want := b.read(b.grad)
	if _, _, _, err := b.Score(b.x, batch); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.read(b.buffers), b.InitBuffers()) {
		t.Error("Grad or Score has moved the buffers")
	}
	stepped, err := b.Step(b.grad, b.x, b.buffers, batch)
	if err != nil {
		t.Fatal(err)
	}
	if stepped != loss || !slices.Equal(b.read(b.grad), want) {
		t.Errorf("Step has loss %v and another gradient, or loss, than Grad, %v", stepped, loss)
	}
	moved := b.read(b.buffers)
	b.dev.Write(b.buffers, b.InitBuffers())
	if err := b.Observe(b.x, b.buffers, batch, 0.1); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.read(b.buffers), moved) || slices.Equal(moved, b.InitBuffers()) {
		t.Error("Step moves the buffers otherwise than Observe")
	}
}

// With the statistics of a large batch in the buffers, ScoreWith and Score agree except for biased
// and unbiased variance. ScoreWith of a batch equals the sum over its single examples, and agrees
// with Predict.
func TestScoreWithUsesBuffers(t *testing.T) {
	b := newBuffered(t, "resnet20")
	batch := b.batch(32, 0)
	if err := b.Observe(b.x, b.buffers, batch, 1); err != nil {
		t.Fatal(err)
	}
	loss, hits, hits5, err := b.ScoreWith(b.x, b.buffers, batch)
	if err != nil {
		t.Fatal(err)
	}
	ofBatch, _, _, err := b.Score(b.x, batch)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(loss/ofBatch-1) > 0.02 || loss == ofBatch {
		t.Errorf("cross entropies add up to %v with buffers and %v with the batch", loss, ofBatch)
	}
	sum, right := 0.0, 0.0
	logits := make([]float64, b.Classes())
	for i, y := range batch.Y {
		one := device.Batch{X: batch.X[i*b.Inputs() : (i+1)*b.Inputs()], Y: batch.Y[i : i+1]}
		if err := b.Predict(logits, b.x, b.buffers, one); err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, v := range logits {
			total += math.Exp(v)
		}
		sum += math.Log(total) - logits[y]
		if slices.Index(logits, slices.Max(logits)) == int(y) {
			right++
		}
	}
	if math.Abs(loss/sum-1) > 1e-5 || hits != right || hits5 != 32 {
		t.Errorf("loss %v, hits %v and %v; one by one %v, %v and 32", loss, hits, hits5, sum, right)
	}
}

// A network without batch norm ignores the buffers.
func TestNetworkWithoutBuffers(t *testing.T) {
	b := newBuffered(t, "mlp")
	batch := b.batch(3, 0)
	if len(b.Describe().Buffers) != 0 || len(b.InitBuffers()) != 0 {
		t.Errorf("buffers of sizes %v", b.Describe().Buffers)
	}
	loss, err := b.Grad(b.grad, b.x, batch)
	if err != nil {
		t.Fatal(err)
	}
	want := b.read(b.grad)
	if stepped, err := b.Step(b.grad, b.x, b.buffers, batch); err != nil || stepped != loss ||
		!slices.Equal(b.read(b.grad), want) {
		t.Errorf("Step: loss %v, error %v, want %v and the same gradient", stepped, err, loss)
	}
	if err := b.Observe(b.x, b.buffers, batch, 0.5); err != nil {
		t.Error(err)
	}
	of, _, _, err := b.Score(b.x, batch)
	if err != nil {
		t.Fatal(err)
	}
	if with, _, _, err := b.ScoreWith(b.x, b.buffers, batch); err != nil || with != of {
		t.Errorf("ScoreWith %v, error %v, want %v", with, err, of)
	}
}

// One pixel of one example has no variance: training continues and leaves the running variance
// unchanged.
func TestOneRowOfBatchNorm(t *testing.T) {
	b := newBuffered(t, "resnet18") // its last stages reduce 6×6 to one pixel
	if _, err := b.Step(b.grad, b.x, b.buffers, b.batch(1, 0)); err != nil {
		t.Fatal(err)
	}
	got := b.read(b.buffers)
	for i, v := range got {
		if v != v || math.IsInf(float64(v), 0) {
			t.Fatalf("buffer %d is %v", i, v)
		}
	}
	variances := b.Buffers().View(got, "layer4.1.bn2.running_var")
	if slices.Min(variances) != 1 || slices.Max(variances) != 1 {
		t.Errorf("the running variance of one pixel moved to %v", variances[:5])
	}
	for i, v := range b.read(b.grad) {
		if v != v {
			t.Fatalf("derivative by parameter %d is NaN", i)
		}
	}
}
