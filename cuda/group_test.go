package cuda

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"fspda/cpu"
	"fspda/cuda/driver"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
)

// groupAgent is an agent that takes steps x ← x - 0.1·g - 0.01·y, y ← y + g, as agents of a run do
// between two exchanges.
type groupAgent struct {
	d       device.Device
	p       device.Program
	x, y, g device.Vector
	losses  []float64
}

func newGroupAgent(t *testing.T, d device.Device, net *model.Network, code *device.Code, seed uint64) *groupAgent {
	t.Helper()
	p, err := d.Load(code)
	if err != nil {
		t.Fatal(err)
	}
	a := &groupAgent{d: d, p: p, x: d.NewVector(net.Dim()), y: d.NewVector(net.Dim()), g: d.NewVector(net.Dim())}
	d.Write(a.x, net.Init(seed))
	return a
}

// step begins an iteration. The result waits for the loss.
func (a *groupAgent) step(b device.Batch) (wait func() error) {
	at, out := len(a.losses), make([]float64, 1)
	a.losses = append(a.losses, 0)
	over := a.p.Start(a.x, a.g, nil, 0, b, out)
	a.d.Do(device.Combine(a.x, device.Term{A: 1, V: a.x}, device.Term{A: -0.1, V: a.g}, device.Term{A: -0.01, V: a.y}))
	a.d.Do(device.Combine(a.y, device.Term{A: 1, V: a.y}, device.Term{A: 1, V: a.g}))
	return func() error {
		err := over()
		a.losses[at] = out[0]
		return err
	}
}

// groupTask is a small network and a data set.
type groupTask struct {
	net  *model.Network
	code *device.Code
	set  device.Batch // all examples
}

func newGroupTask(t *testing.T, stored bool) groupTask {
	t.Helper()
	net, err := model.MLP(model.MLPOptions{Inputs: 21, Classes: 5, Hidden: []int{9}, WeightDecay: 1e-3})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := net.Plan(6, model.Train)
	if err != nil {
		t.Fatal(err)
	}
	s := groupTask{net: net, code: plan.Code(), set: device.Batch{Bytes: make([]uint8, 40*21), Scale: []float32{0.01},
		Shift: []float32{-0.7}}}
	if stored {
		s.set.CacheKey = new(device.CacheKey)
	}
	draw := rng.New(1, "group task")
	for i := range s.set.Bytes {
		s.set.Bytes[i] = uint8(draw.IntN(256))
	}
	return s
}

// batch sets b to the batch of an agent in an iteration, in b's memory.
func (s groupTask) batch(b *device.Batch, agent, t int, numbers bool) {
	draw := rng.New(2, "batch", uint64(agent), uint64(t))
	rows, y := b.Rows[:0], b.Y[:0]
	for range s.code.Batch {
		rows, y = append(rows, int32(draw.IntN(40))), append(y, int32(draw.IntN(5)))
	}
	*b = s.set
	b.Rows, b.Y = rows, y
	if numbers {
		*b = device.Batch{X: b.Numbers(nil, 21), Y: y}
	}
}

// Agents that share a GPU and launches get the bits of each alone, however they are grouped and however
// far they run ahead of their losses. They are near the CPU's, which adds in another order.
func TestGroup(t *testing.T) {
	const ahead = 3
	for _, c := range []struct {
		agents, steps              int
		stored, numbers, launching bool
		refused                    bool // the driver refuses the third cooperative launch
	}{{5, 12, true, false, false, false}, {5, 12, true, false, true, false}, {5, 12, false, false, false, false}, {5,
		12, false, true, true, false}, {20, 4, true, false, false, false},
		{5, 12, true, false, false, true}} {
		t.Run(fmt.Sprintf("%d agents,stored=%t,numbers=%t,launching=%t,refused=%t", c.agents, c.stored, c.numbers,
			c.launching, c.refused), func(t *testing.T) {
			agents, steps := c.agents, c.steps
			s := newGroupTask(t, c.stored)
			train := func(d device.Device, together bool) (models [][]float32, losses [][]float64) {
				models, losses = make([][]float32, agents), make([][]float64, agents)
				var wg sync.WaitGroup
				for i := range agents {
					a := newGroupAgent(t, d, s.net, s.code, uint64(i))
					wg.Go(func() {
						var b device.Batch
						var waits []func() error
						for k := range steps {
							s.batch(&b, i, k, c.numbers)
							waits = append(waits, a.step(b))
							clear(b.Rows) // the batch was copied
							clear(b.Y)
							if len(waits) > ahead {
								if err := waits[0](); err != nil {
									t.Error(err)
								}
								waits = waits[1:]
							}
						}
						for _, wait := range waits {
							if err := wait(); err != nil {
								t.Error(err)
							}
						}
						models[i], losses[i] = make([]float32, s.net.Dim()), a.losses
						d.Read(models[i], a.x)
					})
					if !together {
						wg.Wait()
					}
				}
				wg.Wait()
				return models, losses
			}
			onCPU, lossesOnCPU := train(cpu.New(), true)
			single, _ := openFake(t, fakegpu.Options{}, false, SeparateLaunches(true))
			want, wantLosses := train(single, false)
			// while it computes, other agents' requests come
			d, m := openFake(t, fakegpu.Options{EventDelay: 2 * time.Millisecond}, false,
				SeparateLaunches(c.launching))
			if c.refused {
				m.Fail("LaunchCooperative", 2, driver.CooperativeLaunchTooLarge)
			}
			got, losses := train(d, true)
			for i := range agents {
				if !slices.Equal(got[i], want[i]) || !slices.Equal(losses[i], wantLosses[i]) {
					t.Errorf("agent %d: the model or its losses %v differ from those alone, %v", i, losses[i],
						wantLosses[i])
				}
				near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-5*(1+math.Abs(b)) }
				if !slices.EqualFunc(losses[i], lossesOnCPU[i], near) || !slices.EqualFunc(got[i], onCPU[i],
					func(a, b float32) bool { return near(float64(a), float64(b)) }) {
					t.Errorf("agent %d: the model or its losses %v are far from the CPU's %v", i, losses[i],
						lossesOnCPU[i])
				}
			}
			name := "GraphLaunch"
			if c.stored && !c.launching {
				name = "LaunchCooperative"
			}
			n := m.Count(name) // a cooperative launch may also have no gradient
			if n < 1 || name == "GraphLaunch" && (n >= agents*steps || n < steps) {
				t.Errorf("%d launches for %d gradients of %d agents, want fewer", n, agents*steps, agents)
			}
		})
	}
}

// In 16 bits agents have the same bits in a group as alone, loss scales included, close to the
// CPU's; and they share launches.
func TestGroupHalf(t *testing.T) {
	const agents, steps = 4, 6
	s := newGroupTask(t, true)
	train := func(d device.Device, from, to int) (models [][]float32, losses [][]float64) {
		var all []*groupAgent
		for i := from; i < to; i++ {
			a := newGroupAgent(t, d, s.net, s.code, uint64(i))
			if scaled := d.Features().Scaler; scaled != nil && i == 1 {
				// beyond fp16, at first
				scaled.SetLossScale(a.g, device.LossScale{Scale: 1 << 24, Good: 3})
			}
			all = append(all, a)
		}
		var b device.Batch
		for k := range steps {
			var waits []func() error
			for i, a := range all {
				s.batch(&b, from+i, k, k%2 == 1)
				waits = append(waits, a.step(b))
			}
			for _, wait := range waits {
				if err := wait(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, a := range all {
			x := make([]float32, s.net.Dim())
			d.Read(x, a.x)
			models, losses = append(models, x), append(losses, a.losses)
			if scaled, ok := d.(*Device); ok && scaled.precision == FP16 {
				scale, _ := scaled.LossScale(a.g)
				losses[len(losses)-1] = append(a.losses, scale.Scale, float64(scale.Good), float64(scale.Skipped))
			}
		}
		return models, losses
	}
	want, wantLosses := train(cpu.New(), 0, agents)
	for _, p := range []Precision{FP16, BF16} {
		d, m := openFake(t, fakegpu.Options{}, false, WithPrecision(p))
		got, losses := train(d, 0, agents)
		if _, ok := d.groupable(s.code); !ok {
			t.Errorf("%s: agents do not share launches", p)
		}
		if n := m.Count("GraphLaunch"); n >= agents*steps {
			t.Errorf("%s: %d launches for %d gradients", p, n, agents*steps)
		}
		for i := range agents {
			one, _ := openFake(t, fakegpu.Options{}, false, WithPrecision(p))
			mine, myLosses := train(one, i, i+1)
			if !slices.Equal(mine[0], got[i]) || !slices.Equal(myLosses[0], losses[i]) {
				t.Errorf("%s, agent %d: losses %v alone, %v in a group", p, i, myLosses[0], losses[i])
			}
			skipped := p == FP16 && i == 1
			if far := distance(got[i], want[i]); !skipped && far > 0.01 ||
				!(math.Abs(losses[i][0]-wantLosses[i][0]) <= 0.02) {
				t.Errorf("%s, agent %d: the model differs by %.2g of its length; losses %v, want %v", p, i, far,
					losses[i], wantLosses[i])
			}
			if tail := losses[i][steps:]; p == FP16 && skipped != (tail[2] > 0) {
				t.Errorf("agent %d: loss scale %v", i, tail)
			}
		}
	}
}

// The copy of an unreachable data set is freed.
func TestDatasetIsDropped(t *testing.T) {
	d, _ := openFake(t, fakegpu.Options{}, false)
	s := newGroupTask(t, true)
	a := newGroupAgent(t, d, s.net, s.code, 1)
	var b device.Batch
	s.batch(&b, 0, 0, false)
	if err := a.step(b)(); err != nil {
		t.Fatal(err)
	}
	if n := d.datasetsHeld(); n != 1 {
		t.Errorf("%d data sets are on the GPU, want 1", n)
	}
	b, s.set = device.Batch{}, device.Batch{}
	for range 20 {
		if collectAll(); d.datasetsHeld() == 0 {
			return
		}
	}
	t.Error("the data set is still on the GPU")
}

func (d *Device) datasetsHeld() int {
	d.datasets.mu.Lock()
	defer d.datasets.mu.Unlock()
	return len(d.datasets.all)
}

// Ten agents that exchange in pairs take few driver calls in an iteration: a launch for their
// gradients, one for their steps, and the launches of the exchange. Alone they would take ten of
// each.
func TestCallsOfIteration(t *testing.T) {
	for name, c := range map[string]struct {
		with  Option
		bound map[string]float64
	}{
		"megakernel": {SeparateLaunches(false), map[string]float64{"LaunchCooperative": 4, "GraphLaunch": 0,
			"LaunchKernel": 1, "MemcpyHtoD": 1, "EventRecord": 4, "StreamSynchronize": 0.1}},
		"launches": {SeparateLaunches(true), map[string]float64{"LaunchCooperative": 0, "GraphLaunch": 7,
			"LaunchKernel": 20, "EventRecord": 10, "StreamSynchronize": 0.1}},
	} {
		t.Run(name, func(t *testing.T) {
			counts := callsOfIteration(t, c.with)
			t.Logf("calls of an iteration: %v", counts)
			for name, most := range c.bound {
				if counts[name] > most {
					t.Errorf("%.2f calls of %s in an iteration, want %v at most", counts[name], name, most)
				}
			}
		})
	}
}

func callsOfIteration(t *testing.T, with Option) map[string]float64 {
	t.Helper()
	r := newTraining(t)
	r.config.Batch = 3 // two in an epoch: a shorter one would be another program
	r.config.Agents, r.config.Graph, r.config.Iterations, r.config.EvalPoints, r.config.Checkpoint,
		r.config.Density = 10, "complete", 20, 1, 0, 0.1
	d, m := openFake(t, fakegpu.Options{EventDelay: time.Millisecond}, false, with)
	names := []string{"LaunchCooperative", "GraphLaunch", "LaunchKernel", "MemcpyHtoD", "MemcpyDtoH", "EventRecord",
		"StreamWaitEvent", "StreamSynchronize", "MemAlloc"}
	const from, to = 9, 18 // graphs are made before, and models are evaluated after these iterations
	counts := map[string]float64{}
	count := func(sign float64) {
		for _, name := range names {
			counts[name] += sign * float64(m.Count(name)) / (to - from)
		}
	}
	onStep := func(at int) {
		switch at {
		case from:
			count(-1)
		case to:
			count(1)
		}
	}
	if _, err := r.run(t, d, filepath.Join(t.TempDir(), "run"), onStep); err != nil {
		t.Fatal(err)
	}
	return counts
}
