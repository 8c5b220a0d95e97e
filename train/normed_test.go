package train

import (
	"fmt"
	"math"
	"sync/atomic"

	"fspda/device"
	"fspda/internal/rng"
	"fspda/model"
)

// normed is a linear network of some pixels behind one layer of batch norm, in float64: the
// smallest real model with buffers. Its parameters are scale, shift, weights and biases.
type normed struct {
	features, classes int // it looks at every stride-th pixel
	decay             float64

	steps, grads, observed *atomic.Int64 // calls, for tests
}

var _ Model = normed{}

const (
	normedEps = 1e-5
	stride    = 16
)

// seen is what the network sees of example i.
func (m normed) seen(b device.Batch, i int) []float64 {
	all := b.Slice(i, i+1).Numbers(nil, labSet.Features())
	x := make([]float64, m.features)
	for k := range x {
		x[k] = float64(all[k*stride+stride/2])
	}
	return x
}

func newNormed(decay float64) normed {
	return normed{features: labSet.Features() / stride, classes: labSet.Classes, decay: decay, steps: new(atomic.Int64),
		grads: new(atomic.Int64), observed: new(atomic.Int64)}
}

func (m normed) Describe() model.Description {
	return model.Description{Tensors: model.Vectors(m.features, m.features, m.features*m.classes, m.classes),
		Buffers: []int{m.features, m.features}}
}
func (m normed) Dim() int { return 2*m.features + (m.features+1)*m.classes }

func (m normed) Init(seed uint64) []float32 {
	s, x := rng.New(seed, "init"), make([]float32, m.Dim())
	for k := range x {
		switch {
		case k < m.features:
			x[k] = 1
		case k >= 2*m.features:
			x[k] = float32(0.05 * s.Norm())
		}
	}
	return x
}

func (m normed) InitBuffers() []float32 {
	b := make([]float32, 2*m.features)
	for k := m.features; k < len(b); k++ {
		b[k] = 1
	}
	return b
}

// moments are mean and biased variance of each feature over the batch.
func (m normed) moments(b device.Batch) (mean, variance []float64) {
	f, n := m.features, float64(b.N())
	mean, variance = make([]float64, f), make([]float64, f)
	for i := range b.N() {
		for k, v := range m.seen(b, i) {
			mean[k] += v / n
		}
	}
	for i := range b.N() {
		for k, v := range m.seen(b, i) {
			gap := v - mean[k]
			variance[k] += float64(gap*gap) / n
		}
	}
	return mean, variance
}

func onHost(v device.Vector) []float32 {
	host := make([]float32, v.Len())
	cpuDevice.Read(host, v)
	return host
}

// forward gives each example's probabilities, its normalised features, and the batch's scores.
func (m normed) forward(x []float32, b device.Batch, mean, variance []float64) (p, hat [][]float64, loss, hits,
	hits5 float64) {
	f := m.features
	w, bias := x[2*f:2*f+f*m.classes], x[2*f+f*m.classes:]
	for i := range b.N() {
		h, logits := make([]float64, f), make([]float64, m.classes)
		for k, v := range m.seen(b, i) {
			h[k] = (v - mean[k]) / math.Sqrt(variance[k]+normedEps)
		}
		for c := range logits {
			logits[c] = float64(bias[c])
			for k, v := range h {
				logits[c] += float64(w[c*f+k]) * (float64(x[k])*v + float64(x[f+k]))
			}
		}
		y, above, sum := int(b.Y[i]), 0, 0.0
		for c, l := range logits {
			sum += math.Exp(l - logits[y])
			if l > logits[y] || l == logits[y] && c < y {
				above++
			}
		}
		for c, l := range logits {
			logits[c] = math.Exp(l-logits[y]) / sum
		}
		loss += math.Log(sum)
		if above == 0 {
			hits++
		}
		if above < 5 {
			hits5++
		}
		p, hat = append(p, logits), append(hat, h)
	}
	return p, hat, loss, hits, hits5
}

func (m normed) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	m.grads.Add(1)
	return m.grad(dst, x, b), nil
}

func (m normed) grad(dst, at device.Vector, b device.Batch) float64 {
	x, f, n := onHost(at), m.features, float64(b.N())
	mean, variance := m.moments(b)
	p, hat, loss, _, _ := m.forward(x, b, mean, variance)
	g := make([]float64, len(x))
	for i := range b.N() {
		for c, q := range p[i] {
			if c == int(b.Y[i]) {
				q--
			}
			q /= n
			g[2*f+f*m.classes+c] += q
			for k, h := range hat[i] {
				w := float64(x[2*f+c*f+k])
				g[k] += q * w * h
				g[f+k] += q * w
				g[2*f+c*f+k] += q * (float64(x[k])*h + float64(x[f+k]))
			}
		}
	}
	host, sq := make([]float32, len(x)), 0.0
	for k, v := range x {
		sq += float64(v) * float64(v)
		host[k] = float32(g[k] + m.decay*float64(v))
	}
	cpuDevice.Write(dst, host)
	return loss/n + m.decay/2*sq
}

func (normed) Async() bool { return false }

func (m normed) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	if buffers == nil {
		return ended(m.Grad(dst, x, b))
	}
	m.steps.Add(1)
	loss := m.grad(dst, x, b)
	return ended(loss, m.observe(buffers, b, 0.1))
}

func (m normed) Observe(_, buffers device.Vector, b device.Batch, momentum float64) error {
	m.observed.Add(1)
	return m.observe(buffers, b, momentum)
}

func (m normed) observe(buffers device.Vector, b device.Batch, momentum float64) error {
	if buffers.Len() != 2*m.features {
		return fmt.Errorf("%d buffers, want %d", buffers.Len(), 2*m.features)
	}
	host, n := onHost(buffers), float64(b.N())
	mean, variance := m.moments(b)
	for k := range mean {
		host[k] = float32((1-momentum)*float64(host[k]) + momentum*mean[k])
		host[m.features+k] = float32((1-momentum)*float64(host[m.features+k]) + momentum*variance[k]*n/max(1, n-1))
	}
	cpuDevice.Write(buffers, host)
	return nil
}

func (m normed) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	mean, variance := m.moments(b)
	_, _, loss, hits, hits5 = m.forward(onHost(x), b, mean, variance)
	return loss, hits, hits5, nil
}

func (m normed) ScoreWith(x, buffers device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	host := onHost(buffers)
	mean, variance := make([]float64, m.features), make([]float64, m.features)
	for k := range mean {
		mean[k], variance[k] = float64(host[k]), float64(host[m.features+k])
	}
	_, _, loss, hits, hits5 = m.forward(onHost(x), b, mean, variance)
	return loss, hits, hits5, nil
}
