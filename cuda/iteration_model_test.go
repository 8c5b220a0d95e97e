package cuda

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"fspda/cuda/driver"
	"fspda/cuda/kernels"
	"fspda/data"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// The model of an iteration of figure 1 on an H200, in seconds: what it adds up are the
// calls that the engine sends, and where the megakernel places their blocks. The sources:
//
//   - modelBlocks: the time of a block in the megakernel, measured on an H200 (a22da8e8, raw
//     times of FSPDA_CUDA_PHASES). Second runs of the same phase took 5 to 14 % less, which is what
//     fetching code costs. Estimates from counted instructions were 1.5 to 3 times too low: a warp
//     issues one in 3.7 to 5.5 cycles, because its scheduler has one other warp at most.
//   - the others: measured in the same way. A barrier takes 0.84 µs from the end of the last warp
//     until the others go on; a command 0.25 µs until it starts; the list of a launch 3.2 µs;
//     cooperative launches follow each other in 4.2 µs.
const (
	modelProcessors = 132
	modelBarrier    = 0.84e-6
	modelCommand    = 0.25e-6
	modelLaunch     = 4.2e-6 // the time between the end of a launch and the start of the next
	modelList       = 3.2e-6 // the time until four iterations' commands and rows are there
	modelMost       = 40e-6  // the largest time of an iteration that the test accepts
	modelError      = 0.2
	modelBarriers   = 5.5 // barriers of an iteration: 5, and some more while agents are apart
)

// modelBlocks is how long a block of a kernel takes in the megakernel.
var modelBlocks = map[string]float64{"gemm_nt_bytes_mma": 7.3e-6, "gemm_tn_bytes_mma": 8.5e-6, "head": 6.3e-6,
	"gemm_tn_narrow": 3e-6, "bias_gradient": 1.8e-6, "add_decay": 2.9e-6, "square_blocks": 1.7e-6,
	"combine3": 2.3e-6, "gather": 1e-6, "collect": 0.9e-6, "add_diff": 1.3e-6}

// modelPhases is how long phases with these kernels took on an H200, from their start to the end of
// the last warp (a22da8e8).
var modelPhases = map[string]float64{"gemm_nt_bytes_mma": 7.87e-6, "head": 7.02e-6, "gemm_tn_bytes_mma": 9.39e-6,
	"combine3": 2.59e-6}

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
			t.Fatalf("the model does not know %s, which an iteration calls", c.Kernel.Name)
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
// adds a phase, or places calls behind others, fails here.
func TestModelOfIteration(t *testing.T) {
	launches := launchesOfFigure1(t)
	var all []float64
	sum, count, phases := 0.0, 0, 0
	typical := map[string]int{}
	predicted := map[string][]float64{} // The times of all phases with a kernel.
	for _, l := range launches {
		iterations := 0
		var s strings.Builder
		total := modelLaunch + modelList
		for i, calls := range l.phases {
			names, seconds := phaseOf(t, calls)
			for _, c := range calls {
				if c.Kernel.Name == "head" {
					iterations++
				}
			}
			total += modelBarrier + seconds
			for name := range modelPhases {
				if slices.Contains(names, name) {
					predicted[name] = append(predicted[name], seconds)
				}
			}
			fmt.Fprintf(&s, "phase %d: %5.2f µs: %s\n", i, seconds*1e6, strings.Join(names, ", "))
		}
		if iterations == 0 {
			t.Fatalf("a launch without a gradient:\n%s", s.String())
		}
		each, barriers := total/float64(iterations), float64(len(l.phases))/float64(iterations)
		all = append(all, each)
		what := fmt.Sprintf("%d iterations, %d barriers, %d bytes from the host: %.1f µs an iteration\n%s", iterations,
			len(l.phases), l.hostBytes, each*1e6, s.String())
		if typical[what]++; typical[what] == 1 {
			t.Log(what)
		}
		if barriers > 7 {
			t.Errorf("%.1f barriers an iteration, want at most 7:\n%s", barriers, what)
		}
		sum, count, phases = sum+total, count+iterations, phases+len(l.phases)
	}
	if count == 0 {
		t.Fatal("no launch has the gradients of all agents")
	}
	for name, measured := range modelPhases {
		slices.Sort(predicted[name])
		if p := predicted[name][len(predicted[name])/2]; math.Abs(p-measured) > modelError*measured {
			t.Errorf("the median phase with %s takes %.2f µs, want the measured %.2f within %.0f %%", name, p*1e6,
				measured*1e6, 100*modelError)
		}
	}
	slices.Sort(all)
	each := sum / float64(count)
	t.Logf("%d launches of %d iterations: %.1f to %.1f µs an iteration, on average %.1f; %.1f barriers", len(all),
		count, all[0]*1e6, all[len(all)-1]*1e6, each*1e6, float64(phases)/float64(count))
	if b := float64(phases) / float64(count); b > modelBarriers {
		t.Errorf("%.1f barriers an iteration, want at most %v", b, modelBarriers)
	}
	if each > modelMost {
		t.Errorf("%.1f µs an iteration, want at most %.0f", each*1e6, modelMost*1e6)
	}
}

// modelLaunchOf is a launch of the megakernel.
type modelLaunchOf struct {
	phases    [][]kernels.Call
	hostBytes int // bytes that the GPU reads from the host
}

// launchesOfFigure1 returns the launches of a run of figure 1 on a fake GPU that computes nothing,
// and completes a launch once all agents have queued later iterations, as a GPU that is slower than
// the host.
func launchesOfFigure1(t *testing.T) []modelLaunchOf {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 2560, Test: 20, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	c := train.Default()
	c.DataTrain, c.DataTest, c.Hidden, c.Metrics, c.Density, c.Edges = 2560, 20, train.Widths{100}, "test", 0.1,
		"one-edge"
	c.Agents, c.Graph, c.Batch, c.Iterations, c.EvalPoints, c.Checkpoint = 10, "er10-published", 256, 48, 1, 0
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
	r := &launchRecorder{device: d}
	if err := d.exec.Do(func() error { r.replace(p.api); return nil }); err != nil {
		t.Fatal(err)
	}
	m := model.NewEngine(net, d)
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	res, err := train.Run(t.Context(), s, train.Options{Device: d, Model: m})
	if err != nil || res.Status != train.Finished {
		t.Fatalf("the run is %s, %v", res.Status, err)
	}
	return r.all
}

// launchRecorder records the launches of the gradients of ten agents.
type launchRecorder struct {
	device *Device
	all    []modelLaunchOf
	since  time.Time
}

const (
	recordedAgents = 10
	patience       = 20 * time.Millisecond // the time to wait for agents that are done, or wait themselves
)

// ahead reports whether the agents have queued so much that a launch is full, or queue no more.
func (r *launchRecorder) ahead() bool {
	return r.device.exec.Ahead(recordedAgents, 6) || time.Since(r.since) > patience
}

// replace replaces functions of the driver.
func (r *launchRecorder) replace(a *driver.API) {
	r.since = time.Now()
	a.LaunchKernel = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream,
		[]unsafe.Pointer) driver.Result {
		return driver.Success
	}
	a.LaunchCooperative = func(driver.Function, [3]uint32, [3]uint32, uint32, driver.Stream,
		[]unsafe.Pointer) driver.Result {
		r.since = time.Now()
		r.record(&r.device.mega.Commands)
		return driver.Success
	}
	query := a.EventQuery
	a.EventQuery = func(e driver.Event) driver.Result {
		if !r.ahead() {
			return driver.NotReady
		}
		return query(e)
	}
}

func (r *launchRecorder) record(list *kernels.CommandList) {
	l := modelLaunchOf{list.Calls(), len(list.Bytes())}
	gradients, whole := 0, 0
	for _, calls := range l.phases {
		for _, c := range calls {
			if c.Kernel.Name == "head" {
				gradients++
				whole += int(c.Grid[2]) / recordedAgents
			}
		}
	}
	if gradients > 0 && gradients == whole {
		r.all = append(r.all, l)
	}
}
