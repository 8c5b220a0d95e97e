package train

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/device"
)

// asyncModel is a model whose losses are read later. It checks that each is read once.
type asyncModel struct {
	Model
	mu   sync.Mutex
	open int // started and not waited for
	most int
}

func (m *asyncModel) Async() bool { return true }

func (m *asyncModel) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	loss, err := m.Model.StartGrad(dst, x, buffers, b)()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open++
	m.most = max(m.most, m.open)
	waited := false
	return func() (float64, error) {
		if waited {
			panic("a gradient is waited for twice")
		}
		waited = true
		if rand.IntN(8) == 0 {
			time.Sleep(20 * time.Microsecond)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.open--
		return loss, err
	}
}

// Agents that look at their losses later come to the same rows and models, by every algorithm that
// has another way through an iteration; no gradient is forgotten.
func TestAsync(t *testing.T) {
	for _, c := range []struct {
		Algo               string
		Momentum, ClipNorm float64
	}{
		{"fspda-sa", 0.5, 0}, {"fspda-storm", 0, 0}, {"dsgd", 0, 0}, {"scaffnew", 0, 0}, {"choco", 0, 0}, {"swarm", 0,
			0},
		{"fspda-sa", 0, 0.5},
	} {
		with := small()
		with.Algo, with.Momentum, with.ClipNorm, with.Iterations = c.Algo, c.Momentum, c.ClipNorm, 40
		m := &asyncModel{Model: labModel(t, with)}
		want, got := trace(t, play(t, with, Options{})), trace(t, play(t, with, Options{Model: m}))
		if got != want {
			t.Errorf("%s: the rows differ from those of a blocking model", c.Algo)
		}
		if m.open != 0 {
			t.Errorf("%s: %d gradients were never waited for", c.Algo, m.open)
		}
		if async := c.ClipNorm == 0; async != (m.most > with.Agents) {
			t.Errorf("%s: %d gradients at once of %d agents", c.Algo, m.most, with.Agents)
		}
	}
}

// With pending losses a run diverges in the same iteration, with the same rows.
func TestAsyncDivergence(t *testing.T) {
	for _, name := range []string{"fspda-sa", "dsgd"} {
		c := small()
		c.Algo, c.Alpha, c.Activation, c.EvalPoints = name, 1e6, "relu", 30
		r := play(t, c, Options{})
		want := r.Diverged.Error() + trace(t, r)
		for range 3 {
			m := &asyncModel{Model: labModel(t, c)}
			r := play(t, c, Options{Model: m})
			if r.Status != Diverged || r.Diverged.Error()+trace(t, r) != want {
				t.Errorf("%s: %s %v, the end differs from that of a blocking model", name, r.Status, r.Diverged)
			}
			if m.open != 0 {
				t.Errorf("%s: %d gradients were never waited for", name, m.open)
			}
		}
	}
}

// privateDevice is a device that panics when it is given the vector of another one.
type privateDevice struct{ device.Device }

// privateVector is a vector of a privateDevice.
type privateVector struct {
	device.Vector
	of *privateDevice
}

func (d *privateDevice) in(v device.Vector) device.Vector {
	f, ok := v.(privateVector)
	if !ok || f.of != d {
		panic("a vector of another device")
	}
	return f.Vector
}

func (d *privateDevice) terms(all []device.Term) []device.Term {
	out := make([]device.Term, len(all))
	for i, t := range all {
		out[i] = device.Term{A: t.A, V: d.in(t.V)}
	}
	return out
}

func (d *privateDevice) Features() device.Features { return device.Features{} }

func (d *privateDevice) NewVector(n int) device.Vector {
	return privateVector{d.Device.NewVector(n), d}
}
func (d *privateDevice) Write(dst device.Vector, src []float32) { d.Device.Write(d.in(dst), src) }
func (d *privateDevice) Read(dst []float32, src device.Vector)  { d.Device.Read(dst, d.in(src)) }

func (d *privateDevice) Do(ops ...device.Op) {
	for _, op := range ops {
		for _, v := range []*device.Vector{&op.Out[0], &op.Out[1], &op.Out[2], &op.In[0], &op.In[1], &op.Start.V} {
			if *v != nil {
				*v = d.in(*v)
			}
		}
		op.Terms, op.To, op.Parts = d.terms(op.Terms), d.terms(op.To), slices.Clone(op.Parts)
		for i, p := range op.Parts {
			op.Parts[i].V = d.in(p.V)
		}
		d.Device.Do(op)
	}
}

// privateModel is a model whose vectors are of a privateDevice.
type privateModel struct {
	Model
	d *privateDevice
}

func (m privateModel) Grad(dst, x device.Vector, b device.Batch) (float64, error) {
	return m.Model.Grad(m.d.in(dst), m.d.in(x), b)
}

func (m privateModel) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	return m.Model.StartGrad(m.d.in(dst), m.d.in(x), buffers, b)
}

func (m privateModel) Score(x device.Vector, b device.Batch) (loss, hits, hits5 float64, err error) {
	return m.Model.Score(m.d.in(x), b)
}

// Agents that are spread over devices compute the same rows as on one device, and no device is
// given the vectors of another.
func TestWorkers(t *testing.T) {
	for _, name := range []string{"fspda-sa", "fspda-storm", "dsgd", "sgd", "choco", "swarm", "fspda-async", "extra"} {
		c := small()
		c.Algo, c.Iterations, c.Density = name, 30, 1
		if name == "sgd" || name == "extra" {
			c.Graph = "complete"
		}
		want := trace(t, play(t, c, Options{}))
		s, m := resolve(t, c)
		var replicas []Replica
		for range 3 {
			d := &privateDevice{cpu.New()}
			replicas = append(replicas, Replica{d, privateModel{m, d}})
		}
		r, err := Run(t.Context(), s,
			Options{Device: replicas[0].Device, Model: replicas[0].Model, Others: replicas[1:]})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if trace(t, r) != want {
			t.Errorf("%s: the rows differ from those of one device", name)
		}
	}
}
