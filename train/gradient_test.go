package train

import (
	"math"
	"slices"
	"testing"

	"fspda/device"
	"fspda/train/evaluate"
)

// A batch in parts gives the gradient of the whole one up to rounding, the short batch at the end
// of an epoch too, L2 term and all.
func TestAccumulate(t *testing.T) {
	for _, name := range []string{"fspda-sa", "fspda-storm"} {
		c := small()
		// 80 examples a shard: four batches of 19 and one of 4
		c.Algo, c.WeightDecay, c.Batch, c.Iterations = name, 0.01, 19, 30
		whole := play(t, c, Options{})
		for _, parts := range []int{2, 5, 19} {
			c.Accum = parts
			got := play(t, c, Options{})
			far := 0.0
			for k, v := range got.Mean {
				far = math.Max(far, math.Abs(float64(v-whole.Mean[k])))
			}
			if far == 0 || far > 1e-5 {
				t.Errorf("%s in %d parts: the mean model is off by %g", name, parts, far)
			}
			if a, b := got.Rows[4], whole.Rows[4]; a.GradsTotal != b.GradsTotal || a.Epoch != b.Epoch {
				t.Errorf("%s in %d parts: %d gradients in %v epochs, want %d in %v", name, parts, a.GradsTotal, a.Epoch,
					b.GradsTotal, b.Epoch)
			}
		}
	}
}

// Batch norm sees a part at a time.
func TestAccumulateBatchNorm(t *testing.T) {
	c := withNorm()
	c.Accum, c.Algo = 3, "fspda-storm" // 16 examples: 6, 6 and 4
	m := newNormed(c.WeightDecay)
	s, r := playNormed(t, c, m, Options{})
	if steps := m.steps.Load(); steps != int64(3*c.Agents*c.Iterations) {
		t.Errorf("%d steps of batch norm, want %d", steps, 3*c.Agents*c.Iterations)
	}
	l, err := s.Loader(0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	v := cpuDevice.NewVector(s.BufferLen())
	cpuDevice.Write(v, m.InitBuffers())
	for range c.Iterations {
		b, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range [][2]int{{0, 6}, {6, 12}, {12, 16}} {
			if err := m.observe(v, b.Slice(at[0], at[1]), 0.1); err != nil {
				t.Fatal(err)
			}
		}
		l.Release(b)
	}
	if !slices.Equal(onHost(v), r.Buffers[0]) {
		t.Error("the buffers are not those of the parts")
	}
	if n := len(evaluate.RecalibrationBatch(s, nil, 0)); n != 6 {
		t.Errorf("recalibration by %d examples at a time, want those of a part", n)
	}
}

// One step of plain gradient descent on all data along the gradient of the loss, shortened just
// where it is longer than the limit, and along the L2 term, which is not.
func TestClipNorm(t *testing.T) {
	c := small()
	c.Algo, c.Agents, c.Graph, c.Sampling, c.WeightDecay = "sgd", 1, "complete", "full", 0.1
	c.Iterations, c.EvalPoints = 1, 1
	s, m := resolve(t, c)
	x, g := cpuDevice.NewVector(s.Dim), cpuDevice.NewVector(s.Dim)
	cpuDevice.Write(x, m.Init(c.Seed))
	var b device.Batch
	s.Set.Train.Gather(&b, s.Shards[0])
	if _, err := m.Grad(g, x, b); err != nil {
		t.Fatal(err)
	}
	// without the L2 term
	cpuDevice.Do(device.Combine(g, device.Term{A: 1, V: g}, device.Term{A: -c.WeightDecay, V: x}))
	norm := math.Sqrt(device.InnerProduct(cpuDevice, g, g))
	x0 := onHost(x)
	moved := func(limit float64) (length float64, clipped int) {
		c := c
		c.ClipNorm = limit
		sq := 0.0
		r := play(t, c, Options{})
		for k, v := range r.Mean {
			sq += math.Pow((float64(x0[k])-float64(v))/c.Alpha-c.WeightDecay*float64(x0[k]), 2)
		}
		return math.Sqrt(sq), r.Rows[1].Clipped
	}
	for _, q := range []struct{ limit, want float64 }{{0, norm}, {norm * 1.01, norm}, {norm / 2, norm / 2},
		{1e-3, 1e-3}} {
		got, clipped := moved(q.limit)
		if math.Abs(got-q.want) > 2e-3*q.want || (clipped == 1) != (q.want < norm) {
			t.Errorf("clip_norm %g: the model moved along a gradient of length %g, %d clipped, want %g", q.limit, got,
				clipped, q.want)
		}
	}
}
