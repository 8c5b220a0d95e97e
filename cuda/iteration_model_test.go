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

// The model of an iteration of figure 1 on an H100 or H200, in seconds, cycles and bytes. It is too
// low: on an H200 an iteration took 117.9 µs before the wide products had tiles of 32, where these
// numbers would have given 46, and the two wide products, launched alone, took 21 and 25 µs instead
// of 15 each. The sources:
//
//   - clock, processors, cores: NVIDIA's data sheet of the H100 SXM, whose 67 TFLOP/s in float32 are
//     132·128·2·1.98 GHz. A float32 product leaves the GPU far below its limit of power.
//   - issued instructions: of the machine code of sm_90 (kernels.TestCompile counts the loops): of a
//     warp in wide products 31.9 for 28 multiply-adds, or 62 for 56, and between tiles of 32 products
//     172, or 333.
//   - pace, barrier and launch: measured on an H200. A scheduler that has one warp issues the loop of
//     a wide product in 84.3 cycles instead of 62.5. That two warps fill it is an assumption. A
//     barrier of all blocks takes 0.97 µs, and 1.39 between writes and reads of others. Cooperative
//     launches follow each other in 4.2 µs.
//   - products on tensor cores: 610 TFLOP/s in bfloat16, measured on an H200. That half of the other
//     instructions of a step are issued meanwhile is an assumption.
//   - the other latencies are assumptions, of the order of published microbenchmarks: 600 cycles for
//     a load from the L2 cache, 150 for the barriers of a tile and its first loads from shared memory,
//     1.2 µs for a read of host memory.
const (
	modelClock      = 1.98e9
	modelProcessors = 132
	modelBarrier    = 1.39e-6
	modelLaunch     = 4.2e-6      // the time between the end of a launch and the start of the next
	modelHost       = 1.2e-6      // the time until the first bytes of the host arrive
	modelPCIe       = 40e9        // bytes a second, of PCIe 5 with 16 lanes
	modelL2         = 5.5e12      // bytes a second
	modelLoad       = 600         // cycles
	modelTile       = 150         // cycles of a tile in which nothing is issued
	modelAlone      = 84.3 / 62.5 // cycles for an instruction of the only warp of a scheduler
	modelTensor     = 7           // cycles of a product of tensor cores, of 16×8×16 numbers
	modelMost       = 46e-6       // the most time of an iteration; the bar on a GPU is 35
	modelBarriers   = 5.5         // barriers of an iteration: 5, and some more while agents are apart
)

// blockCost is the cost of a block of a call: the cycles until it ends if it runs alone, the
// instructions that its warps issue, the multiply-adds of its threads, padding included, and the
// bytes of the L2 cache that it moves.
type blockCost struct{ cycles, issues, products, bytes float64 }

// costOf returns the cost of a block of a call.
func costOf(t *testing.T, c kernels.Call) blockCost {
	arg := func(name string) float64 {
		i := slices.IndexFunc(c.Kernel.Params, func(p kernels.Param) bool { return p.Name == name })
		return float64(int32(c.Args[i]))
	}
	warps := float64(c.Block[0]) / 32
	// product is the cost of k products by threads with `elements` elements each. A warp issues
	// `issue` instructions for a product and `tile` for a tile of `depth` products; `after` cycles
	// follow.
	product := func(k, elements, issue, depth, tile, after float64) blockCost {
		tiles, pace := math.Ceil(k/depth), max(modelAlone, warps/4)
		issued := k*issue + tiles*tile
		return blockCost{2*modelLoad + issued*pace + tiles*modelTile + after, warps * issued,
			32 * warps * elements * k, 0}
	}
	// exact is the cost of a product on tensor cores with exact factors. A warp issues `issue`
	// instructions for a step, of which 39 are products of tensor cores, and `around` before and after.
	exact := func(steps, issue, around, after float64) blockCost {
		step := 39*modelTensor + (issue-39)/2
		return blockCost{2*modelLoad + around*modelAlone + steps*step + after, warps * (issue*steps + around), 0, 0}
	}
	vector := func(reads, writes float64) blockCost { // numbers have 4 bytes
		n := float64(c.Block[0]) * max(1, arg("n")/float64(c.Grid[0]*c.Block[0]))
		return blockCost{modelLoad, warps * 30, 0, 4 * n * (reads + writes)}
	}
	switch name := c.Kernel.Name; name {
	case "gemm_nt_bytes_parts":
		return product(arg("k")/arg("parts")+8, 28, 31.9, 32, 172, 700) // 5 or 6 products are added one by one
	case "gemm_tn_bytes_wide":
		return product(arg("k"), 56, 62, 32, 333, modelLoad+500)
	case "gemm_nt_bytes_mma":
		return exact(math.Ceil(arg("k")/16/arg("parts")), 215, 750, 300)
	case "gemm_tn_bytes_mma":
		return exact(math.Ceil(arg("k")/16), 263, 930, modelLoad+200)
	case "gemm_tn_32":
		return product(arg("k"), 16, 24, 16, 190, modelLoad*4)
	case "gemm_tn_narrow": // lists; columns of A and the first 128 rows of B; 32 rows of each part
		return blockCost{(2+math.Ceil(arg("k")/128))*modelLoad + arg("k")/8*12, warps * (400 + arg("k")/8*17), 0,
			4 * 16 * arg("k")}
	case "bias_gradient": // sums of float64, one after the other, of an eighth of the rows
		return blockCost{(1+math.Ceil(arg("m")/128))*modelLoad + 9*arg("m")/8, warps * (100 + arg("m")), 0,
			4 * 8 * arg("m")}
	case "square_blocks":
		return blockCost{modelLoad + 4096/32/32*modelLoad + 9*128, warps * 128 * 8, 0, 4 * 4096 * warps}
	case "add_decay": // three sums, each a load and a tree of six sums of float64
		return blockCost{3 * (modelLoad + 300 + 6*40), warps * 600, 0, 0}
	case "head": // lists, loads; then a warp's three rows: sigmoids, sums of classes, the loss, gradients
		rows, width, classes := arg("rows"), arg("width"), arg("classes")
		return blockCost{2*modelLoad + 2200, warps * 1600, 2 * rows * width * classes,
			4 * rows * width * (arg("parts") + 2)}
	case "combine1", "combine2", "combine3", "combine4", "combine5", "combine6":
		return vector(float64(name[7]-'0'), 1)
	case "gather":
		return blockCost{2 * modelLoad, warps * 20, 0, 3 * 32 * float64(c.Block[0])} // sectors of 32 bytes
	case "add_diff":
		return blockCost{3 * modelLoad, warps * 30, 0, 5 * 32 * float64(c.Block[0])}
	case "collect":
		return blockCost{2 * modelLoad, warps * 20, 0, 0}
	}
	t.Fatalf("the model does not know %s, which an iteration calls", c.Kernel.Name)
	return blockCost{}
}

// phaseCost is the cost of a phase: of its busiest multiprocessor, and of all.
type phaseCost struct {
	names           []string
	cycles          float64 // the cycles of the busiest multiprocessor
	products, bytes float64 // products of the busiest multiprocessor; bytes of all
	seconds         float64
}

// costOfPhase divides the blocks of a phase among the multiprocessors, as the megakernel does.
func costOfPhase(t *testing.T, calls []kernels.Call) (p phaseCost) {
	type load struct {
		groups   [kernels.MegakernelThreads / 64]float64 // cycles
		issues   float64
		products float64
	}
	all := make([]load, modelProcessors)
	free := kernels.NewPlaces(modelProcessors)
	for _, c := range calls {
		if !slices.Contains(p.names, c.Kernel.Name) {
			p.names = append(p.names, c.Kernel.Name)
		}
		one, width := costOf(t, c), int(c.Block[0])/64
		blocks := int(c.Grid[0] * c.Grid[1] * c.Grid[2])
		first, skip := free.Take(&c)
		for b := range blocks {
			place := skip + (first-skip+b)%(len(all[0].groups)/width*modelProcessors-skip)
			on := &all[place%modelProcessors]
			group := place / modelProcessors * width
			begin := slices.Max(on.groups[group : group+width])
			for g := range width {
				on.groups[group+g] = begin + one.cycles
			}
			on.issues, on.products = on.issues+one.issues, on.products+one.products
		}
		p.bytes += float64(blocks) * one.bytes
	}
	for i := range all {
		p.cycles = max(p.cycles, slices.Max(all[i].groups[:]), all[i].issues/4)
		p.products = max(p.products, all[i].products)
	}
	p.seconds = max(p.cycles/modelClock, modelLoad/modelClock+p.bytes/modelL2)
	return p
}

// An iteration of figure 1 takes at most 46 µs by the model, and five barriers, with the phases and
// bytes that the engine sends. So a change that adds a phase fails here. No mask is sent: they are
// drawn on the device.
func TestModelOfIteration(t *testing.T) {
	launches := launchesOfFigure1(t)
	var all []float64
	sum, count, phases := 0.0, 0, 0
	typical := map[string]int{}
	for _, l := range launches {
		iterations := 0
		var s strings.Builder
		total := modelLaunch + modelHost + float64(l.hostBytes)/modelPCIe + modelLoad/modelClock
		for i, calls := range l.phases {
			p := costOfPhase(t, calls)
			for _, c := range calls {
				if c.Kernel.Name == "head" {
					iterations++
				}
			}
			total += modelBarrier + p.seconds
			fmt.Fprintf(&s, "phase %d: %5.2f µs, %6.0f cycles, %4.2f M multiply-adds on the busiest "+
				"multiprocessor, %4.1f MB: %s\n", i, p.seconds*1e6, p.cycles, p.products/1e6, p.bytes/1e6,
				strings.Join(p.names, ", "))
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
