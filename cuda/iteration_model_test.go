package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/data"
	"fspda/device"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// The model of an iteration of figure 1 on an H200, in seconds: what it adds up are the
// calls that the engine sends, and where the megakernel places their blocks. The sources:
//
//   - modelBlocks: the time of a block in the megakernel, measured on an H200 (eb58f3ef, raw
//     times of FSPDA_CUDA_PHASES, ten agents, the second to fourth iteration of a launch; those of
//     the first take 0 to 2 µs longer). Estimates from counted instructions were 1.5 to 3 times
//     too low: a warp issues one in 3.7 to 5.5 cycles, because its scheduler has one other warp at
//     most.
//   - the others: measured in the same way. A barrier takes 0.84 µs from the end of the last warp
//     until the others go on; a command 0.25 µs until it starts; the list of a launch 3.2 µs;
//     cooperative launches follow each other in 4.2 µs.
const (
	modelProcessors = 132
	modelBarrier    = 0.84e-6
	modelCommand    = 0.25e-6
	modelLaunch     = 4.2e-6 // the time between the end of a launch and the start of the next
	modelList       = 3.2e-6 // the time until four iterations' commands and rows are there
	modelError      = 0.2
	modelBarriers   = 5.5 // barriers of an iteration: 5, and some more while agents are apart
)

// modelBlocks is how long a block of a kernel takes in the megakernel.
var modelBlocks = map[string]float64{"gemm_nt_bytes_mma": 8.9e-6, "gemm_tn_bytes_mma": 9.9e-6, "head": 7.1e-6,
	"gemm_tn_narrow": 4e-6, "bias_gradient": 2.1e-6, "add_decay": 3.6e-6, "square_blocks": 1.7e-6,
	"combine3": 2.4e-6, "gather": 1e-6, "collect": 0.9e-6, "add_diff": 1.5e-6, "copy_words": 0.8e-6}

// modelPhases is how long phases with these kernels took on an H200, from their start to the end of
// the last warp: averages of all launches (eb58f3ef).
var modelPhases = map[string]float64{"gemm_nt_bytes_mma": 9.47e-6, "head": 8.44e-6, "gemm_tn_bytes_mma": 10.59e-6,
	"combine3": 3.08e-6}

// phaseOf returns the kernels of a phase and its time. Its blocks are divided among the
// multiprocessors as in the megakernel.
func phaseOf(t *testing.T, calls []kernels.Call) (names []string, seconds float64) {
	var all [modelProcessors][kernels.MegakernelThreads / 64]float64
	free := kernels.NewPlaces(modelProcessors)
	for _, c := range calls {
		if !slices.Contains(names, c.Kernel.Name) {
			names = append(names, c.Kernel.Name)
		}
		took, ok := modelBlocks[c.Kernel.Name]
		if !ok {
			t.Errorf("the model does not know %s, which an iteration calls", c.Kernel.Name)
		}
		width := int(c.Block[0]) / 64
		first, skip := free.Take(&c)
		for b := range int(c.Grid[0] * c.Grid[1] * c.Grid[2]) {
			place := skip + (first-skip+b)%(len(all[0])/width*modelProcessors-skip)
			on := all[place%modelProcessors][place/modelProcessors*width:][:width]
			end := slices.Max(on) + modelCommand + took
			for g := range on {
				on[g] = end
			}
			seconds = max(seconds, end)
		}
	}
	return names, seconds
}

// The model predicts the measured times of phases of figure 1, and five barriers. So a change that
// adds a phase, or places calls behind others, fails here. A host that is faster than the GPU keeps
// launches full: nearly all have four iterations.
func TestModelOfIteration(t *testing.T) {
	for _, c := range []struct {
		host       float64 // the time until the host begins the next iteration of all agents
		iterations float64 // The least mean number in a launch.
		each       float64 // the most time of an iteration
	}{{10e-6, 3.8, 39e-6}, {25e-6, 3.8, 39e-6}, {34e-6, 3.8, 39e-6}, {42e-6, 1, 44e-6}} {
		t.Run(fmt.Sprintf("host of %.0f µs", c.host*1e6), func(t *testing.T) {
			r := pacedFigure1(t, c.host)
			sum, phases := 0, 0
			predicted := map[string][]float64{} // The times of all phases with a kernel.
			var sizes []int
			from, to, first, last := 0, 0, 0, 0 // without the first launches, and the last
			for i, l := range r.launches {
				if sum < 10*pacedWarmUp {
					from, first = sum+l.gradients, i
				}
				sum += l.gradients
				if sum <= 10*pacedUntil {
					to, last = sum, i
				}
				sizes, phases = append(sizes, l.gradients), phases+len(l.phases)
				var s strings.Builder
				for k, calls := range l.phases {
					names, seconds := phaseOf(t, calls)
					for name := range modelPhases {
						if slices.Contains(names, name) {
							predicted[name] = append(predicted[name], seconds)
						}
					}
					fmt.Fprintf(&s, "phase %d: %5.2f µs: %s\n", k, seconds*1e6, strings.Join(names, ", "))
				}
				if slices.Index(sizes, l.gradients) == i {
					t.Logf("%d gradients, %d bytes from the host, %.1f µs:\n%s", l.gradients, l.hostBytes,
						l.seconds(t)*1e6, s.String())
				}
			}
			if sum != pacedAgents*pacedIterations {
				t.Fatalf("the launches have %d gradients, want those of %d iterations", sum, pacedIterations)
			}
			iterations := float64(to-from) / pacedAgents
			per, each := iterations/float64(last-first), (r.ends[last]-r.ends[first])/iterations
			barriers := float64(phases) / pacedIterations
			t.Logf("gradients of the launches: %d: %.2f iterations in one, %.1f µs an iteration; all: %.2f barriers",
				sizes, per, each*1e6, barriers)
			if per < c.iterations {
				t.Errorf("%.2f iterations in a launch, want at least %v", per, c.iterations)
			}
			if each > c.each {
				t.Errorf("%.1f µs an iteration, want at most %.1f", each*1e6, c.each*1e6)
			}
			if barriers > modelBarriers {
				t.Errorf("%.1f barriers an iteration, want at most %v", barriers, modelBarriers)
			}
			for name, measured := range modelPhases {
				slices.Sort(predicted[name])
				if p := predicted[name][len(predicted[name])/2]; math.Abs(p-measured) > modelError*measured {
					t.Errorf("the median phase with %s takes %.2f µs, want the measured %.2f within %.0f %%", name,
						p*1e6, measured*1e6, 100*modelError)
				}
			}
		})
	}
}

// modelLaunchOf is a launch of the megakernel.
type modelLaunchOf struct {
	phases    [][]kernels.Call
	hostBytes int // bytes that the GPU reads from the host
	gradients int // The gradients of single agents.
}

// seconds returns the time of the launch by the model.
func (l *modelLaunchOf) seconds(t *testing.T) (total float64) {
	total = modelLaunch + modelList
	for _, calls := range l.phases {
		_, took := phaseOf(t, calls)
		total += modelBarrier + took
	}
	return total
}

const (
	pacedAgents     = 10
	pacedIterations = 128
	pacedWarmUp     = 32 // iterations after which launches count, which begin with one or two iterations
	pacedUntil      = 112
	pacedAhead      = 12 // iterations that a host is ahead of its GPU; train allows for 16
)

// pacedRun is a run of figure 1 on a fake GPU that computes nothing and takes the time of the
// model. Its host begins the gradients of the agents one after the other, in equal intervals of a
// clock that is not the machine's: it goes on once the next agent is before its gradient and the
// executor waits.
type pacedRun struct {
	t      *testing.T
	device *Device
	host   float64 // seconds from an iteration to the next

	mu       sync.Mutex
	changed  sync.Cond
	ready    bool // nothing takes time: the run has not begun, or all its gradients are queued
	now      float64
	freeAt   float64 // when the GPU has computed all that was sent
	launches []modelLaunchOf
	ends     []float64                // The ends of the launches.
	times    map[driver.Event]float64 // when the GPU reaches an event
	polls    int                      // answers that the GPU has not reached an event
	asleep   bool                     // the executor waits for operations

	agents map[device.Vector]int // The keys are the vectors of their gradients.
	// An agent is before a gradient, goes on, and has queued it.
	arrived, left, queued [pacedAgents]chan struct{}
}

// pacedFigure1 runs figure 1.
func pacedFigure1(t *testing.T, host float64) *pacedRun {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 2560, Test: 20, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden, c.Metrics, c.Density, c.Edges = 2560, 20, train.Widths{100}, "test", 0.1,
		"one-edge"
	c.Agents, c.Graph, c.Batch, c.Iterations, c.EvalPoints, c.Checkpoint = pacedAgents, "er10-published", 256,
		pacedIterations, 1, 0
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: c.Hidden,
		WeightDecay: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	_, p := fakeBackend(t, fakegpu.Options{})
	d, err := open(p)
	if err != nil {
		t.Fatal(err)
	}
	r := &pacedRun{t: t, device: d, host: host, ready: true, times: map[driver.Event]float64{},
		agents: map[device.Vector]int{}}
	for i := range pacedAgents {
		r.arrived[i], r.left[i], r.queued[i] = make(chan struct{}), make(chan struct{}), make(chan struct{})
	}
	r.changed.L = &r.mu
	if err := d.exec.Do(func() error { r.replace(p.api); return nil }); err != nil {
		t.Fatal(err)
	}
	m := pacedModel{model.NewEngine(net, d), r}
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	evaluated := make(chan struct{}, 2)
	go func() {
		<-evaluated // an evaluation splits launches
		r.pace()
	}()
	res, err := train.Run(t.Context(), s, train.Options{Device: d, Model: m,
		OnRow: func(train.Row) { evaluated <- struct{}{} }})
	if err != nil || res.Status != train.Finished {
		t.Fatalf("the run is %s, %v", res.Status, err)
	}
	return r
}

// pacedModel has agents wait before their gradients.
type pacedModel struct {
	*model.Engine
	run *pacedRun
}

func (m pacedModel) StartGrad(dst, x, buffers device.Vector, b device.Batch) func() (float64, error) {
	i := m.run.await(dst)
	defer func() { m.run.queued[i] <- struct{}{} }()
	return m.Engine.StartGrad(dst, x, buffers, b)
}

// await waits for the time of a gradient. It returns the number of the agent.
func (r *pacedRun) await(grad device.Vector) int {
	r.mu.Lock()
	i, known := r.agents[grad]
	if !known {
		i = len(r.agents)
		r.agents[grad] = i
	}
	r.mu.Unlock()
	r.arrived[i] <- struct{}{}
	<-r.left[i]
	return i
}

// pace begins the gradients. No time passes while an agent queues operations: the agents of an
// iteration have mixed before its first gradient, and each gradient is queued before the next.
func (r *pacedRun) pace() {
	due := 0.0
	for i := range pacedIterations {
		for a := range pacedAgents {
			<-r.arrived[a]
		}
		for a := range pacedAgents {
			if i == 0 && a == 0 {
				r.setReady(false)
			} else {
				due = r.passTo(due+r.host/pacedAgents, pacedAgents*(i-pacedAhead))
			}
			r.left[a] <- struct{}{}
			<-r.queued[a]
		}
	}
	r.setReady(true)
}

func (r *pacedRun) setReady(ready bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = ready
}

// passTo passes the time up to a time and until some gradients are computed. Before each moment at
// which a launch ends, the executor has sent all that it sends.
func (r *pacedRun) passTo(until float64, gradients int) (now float64) {
	for {
		r.settle()
		r.mu.Lock()
		end, done := math.Inf(1), 0
		for i, e := range r.ends {
			if e > r.now {
				end = min(end, e)
			} else {
				done += r.launches[i].gradients
			}
		}
		if r.now = min(end, max(r.now, until)); done >= gradients && end > r.now {
			defer r.mu.Unlock()
			return r.now
		}
		if done < gradients {
			r.now = end
		}
		r.mu.Unlock()
	}
}

// settle waits until the executor has nothing to do at the present time: it has asked the GPU twice
// since, between which it has taken all operations, or the GPU has nothing to do and it sleeps. One
// that sleeps is woken first, since it may be about to go on.
func (r *pacedRun) settle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	sleeps := func() bool { return r.asleep && r.freeAt <= r.now } // It also naps between questions.
	if sleeps() {
		r.mu.Unlock()
		if err := r.device.exec.Do(func() error { return nil }); err != nil {
			r.t.Error(err)
		}
		r.mu.Lock()
	}
	for before := r.polls; r.polls < before+2 && !sleeps(); {
		r.changed.Wait()
	}
}

// replace replaces functions of the driver. The executor calls it.
func (r *pacedRun) replace(a *driver.API) {
	r.device.exec.OnThread = func(now bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asleep = !now
		r.changed.Broadcast()
	}
	a.LaunchKernel = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream,
		[]unsafe.Pointer) driver.Result {
		return driver.Success
	}
	a.LaunchCooperative = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream,
		[]unsafe.Pointer) driver.Result {
		r.launched(&r.device.mega.Commands)
		return driver.Success
	}
	a.EventRecord = func(e driver.Event, _ driver.Stream) driver.Result {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.times[e] = r.freeAt
		return driver.Success
	}
	a.EventQuery = func(e driver.Event) driver.Result {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ready || r.times[e] <= r.now {
			return driver.Success
		}
		r.polls++
		r.changed.Broadcast()
		return driver.NotReady
	}
}

// launched notes a launch with gradients. Others are before and after the iterations.
func (r *pacedRun) launched(list *kernels.CommandList) {
	l := modelLaunchOf{phases: list.Calls(), hostBytes: len(list.Bytes())}
	for _, calls := range l.phases {
		for _, c := range calls {
			if c.Kernel.Name == "head" {
				l.gradients += int(c.Grid[2])
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.gradients == 0 && r.ready {
		return
	}
	r.freeAt = max(r.now, r.freeAt) + l.seconds(r.t)
	r.launches, r.ends = append(r.launches, l), append(r.ends, r.freeAt)
}
