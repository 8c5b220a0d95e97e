package cudnn

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/cuda/dynlib"
)

// gpuProperties holds the properties of a GPU, as the library reports those of a real one.
type gpuProperties struct {
	name                                       string
	version, processors, shared, l2, clock, by int
	bus                                        int // bits
	memory                                     int64
}

var gpus = []gpuProperties{
	{"NVIDIA H100 80GB HBM3", 900, 132, 232448, 50 << 20, 1980000, 2619000, 5120, 85 << 30},
	{"NVIDIA A100-SXM4-40GB", 800, 108, 166912, 40 << 20, 1410000, 1215000, 5120, 42 << 30},
	{"Tesla V100-SXM2-16GB", 700, 80, 98304, 6 << 20, 1530000, 877000, 4096, 17 << 30},
}

// json returns the properties in the library's format.
func (c gpuProperties) json(t *testing.T) []byte {
	text, err := json.Marshal(map[string]any{
		"deviceName": c.name, "deviceVer": c.version, "multiProcessorCount": c.processors,
		"maxSharedMemoryPerBlockOptin": c.shared,
		"l2CacheSize":                  c.l2, "smClockRateKHz": c.clock, "memClockRateKHz": c.by,
		"memoryBusWidth": c.bus, // since 9.28
		"totalGlobalMem": c.memory,
		"driverVer":      13000,
		"maxGridSize":    []int{1<<31 - 1, 65535, 65535}, "maxBlockSize": []int{1024, 1024,
			64}, "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
		"maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024, "oversizedSharedMemoryPerBlock": 0,
		"maxCtasPerSM":       32,
		"maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "warpSize": 32, "supportCoopLaunch": 1,
		"smCountOrigin": 0, "pciDeviceId": 0,
		"isTccDriver": 0, "cudaDeviceId": 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// libraryNotLoaded is CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED.
const libraryNotLoaded Status = 1008

// deviceless returns a handle for a GPU that is not installed: plans can be made but not executed.
func deviceless(t *testing.T, api *API, c gpuProperties) *Handle {
	n := &nodes{api: api, what: c}
	d := n.create(DeviceNode)
	set(n, d, DeviceJSON, CharactersValue, c.json(t)...)
	n.finalize(d)
	if refused, ok := errors.AsType[*Error](n.err); ok && refused.Status == libraryNotLoaded {
		t.Skipf("%v: cuDNN 9.28 needs libcuda.so.1 for this", n.err)
	}
	if n.err != nil {
		t.Fatal(n.err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return &Handle{api: api, device: d}
}

func (c gpuProperties) String() string { return c.name }

// installed returns the library of this machine, if it is new enough to make plans without a GPU.
// cuDNN opens cuBLAS and exits the program if it is missing.
func installed(t *testing.T) *API {
	t.Helper()
	for _, major := range []int{13, 12} {
		_, noBLAS := dynlib.System().Open(dynlib.CUBLAS(major))
		h, err := dynlib.System().Open(dynlib.CUDNN(major, 90))
		if err != nil || noBLAS != nil {
			continue
		}
		a, err := Bind(h)
		if err != nil {
			t.Fatal(err)
		}
		if a.Version() >= 91000 && a.Backend != nil {
			return a
		}
	}
	t.Skipf("cuDNN 9.10 or newer with cuBLAS is not found (set %s to a folder with them)", dynlib.PathVariable)
	return nil
}

// precisions lists the precisions of networks.
var precisions = []struct {
	name string
	of   Type
	m    Math
}{{"fp32", Float32, FMA}, {"tf32", Float32, TensorOp}, {"fp16", Float16, TensorOp}, {"bf16", BFloat16, TensorOp}}

// resnet50 lists the convolutions of ResNet-50 for images of 224 pixels, with the first layer's
// channels padded as in programs.
func resnet50(batch, channels int) []Shape {
	all := []Shape{{batch, 224, 224, channels, 64, 7, 7, 2, 3}}
	in, side := 64, 56
	for stage, width := range []int{64, 128, 256, 512} {
		stride := min(stage+1, 2)
		out := side / stride
		all = append(all, Shape{batch, side, side, in, width, 1, 1, 1, 0}, Shape{batch, side, side, width, width, 3,
			3, stride, 1}, Shape{batch, out, out, width, 4 * width, 1, 1, 1, 0}, Shape{batch, side, side, in, 4 * width,
			1, 1, stride, 0}, Shape{batch, out, out, 4 * width, width, 1, 1, 1, 0})
		if stage > 0 {
			all = append(all, Shape{batch, out, out, width, width, 3, 3, 1, 1})
		}
		in, side = 4*width, out
	}
	return all
}

// The real library makes plans for a GPU that is not installed, for every convolution of ResNet-50
// in each direction and precision. Each engine that it offers can be made again from its stored
// form, with the same workspace.
func TestDeviceless(t *testing.T) {
	api := installed(t)
	long := os.Getenv("FSPDA_LONG") != ""
	shapes := resnet50(128, 4)
	for _, c := range gpus {
		h := deviceless(t, api, c)
		for _, precision := range precisions {
			if precision.of == BFloat16 && c.version < 800 {
				continue
			}
			begin, offered, engines, compiled := time.Now(), 0, map[string]int{}, 0
			for i, s := range shapes {
				if !long && (i%5 != 1 || c.version != 900) && i != 2 {
					continue
				}
				for _, d := range []Direction{Forward, GradX, GradW} {
					conv := &Conv{h: h, shape: s, direction: d, of: precision.of}
					all := checkOffers(t, conv, precision.m, long)
					offered += len(all)
					for _, o := range all {
						engines[fmt.Sprintf("%d:%d", d, o.engine.Index)]++
						if o.compiles() {
							compiled++
						}
					}
				}
			}
			t.Logf("%s, %s: %d plans in %.1f s, %d compiled; direction:engine×times %s", c, precision.name, offered,
				time.Since(begin).Seconds(), compiled, counted(engines))
		}
	}
}

func counted(all map[string]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s×%d ", k, all[k])
	}
	return b.String()
}

// checkOffers makes plans of the engines that are offered, and returns the usable ones; there must
// be some.
func checkOffers(t *testing.T, c *Conv, m Math, all bool) (taken []offer) {
	t.Helper()
	n, g, err := c.graph(16)
	defer func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	}()
	if err != nil {
		t.Fatal(err)
	}
	deterministic := 0
	offers := n.offers(g, HeuristicA, c.h.target())
	for i, o := range append(offers, n.offers(g, HeuristicFallback, c.h.target())...) {
		if o.unusable(m, false) {
			continue
		}
		if !o.unusable(m, true) {
			deterministic++
		}
		taken = append(taken, o)
		if !all && i%8 != 0 || o.compiles() { // which needs a GPU since 9.28
			continue
		}
		plan := n.planOf(o.config, c.h.target())
		want := getOne[int64](n, plan, PlanWorkspace, Int64Value)
		if n.err != nil {
			t.Errorf("%v, direction %d, type %d: %v: %v", c.shape, c.direction, c.of, o.engine, n.err)
			n.err = nil
			continue
		}
		p, err := c.makePlan(o.engine, 16)
		if err != nil {
			t.Errorf("%v: recreating it: %v", c.shape, err)
			continue
		}
		if int64(p.memory) != want {
			t.Errorf("%v: %v needs %d bytes, and %d when recreated", c.shape, o.engine, want, p.memory)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
	if len(taken) == 0 || deterministic == 0 {
		t.Errorf("%v, direction %d, type %d, math %d: %d engines, %d of them deterministic; want at least one of each",
			c.shape, c.direction, c.of, m, len(taken), deterministic)
	}
	return taken
}

// Without a GPU the recommended implementation can be selected, and packs of addresses can be made.
func TestDevicelessAdvice(t *testing.T) {
	api := installed(t)
	h := deviceless(t, api, gpus[0])
	how := Selection{MaxWorkspace: 256 << 20, Deterministic: true}
	for _, precision := range precisions {
		for _, s := range []Shape{resnet50(128, 4)[2], {N: 5, H: 9, W: 7, C: 3, K: 10, R: 5, S: 3, Stride: 2, Pad: 1}} {
			c, err := h.NewConv(s, GradW, precision.of, precision.m, how)
			if err != nil {
				t.Errorf("%s: %v", precision.name, err)
				continue
			}
			if c.plan == nil || c.Workspace > how.MaxWorkspace || !strings.HasPrefix(c.Route(), "graph, engine ") {
				t.Errorf("%s: %v uses %s with %d bytes", precision.name, s, c.Route(), c.Workspace)
			}
			for i := range maxPacks + 2 {
				if _, err := c.plan.pack(addresses{1 << 20, 2 << 20, 3 << 20, 0x100 * 16}); err != nil ||
					len(c.plan.packs.known) != 1 {
					t.Fatalf("time %d: %v, %d packs", i, err, len(c.plan.packs.known))
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	c := &Conv{h: h, shape: Shape{N: 1, H: 4, W: 4, C: 8, K: 8, R: 1, S: 1, Stride: 1}, of: Float16}
	for what, e := range map[string]Engine{"an index": {Index: 4000},
		"a knob": {Index: 0, Knobs: []Knob{{Type: 45, Value: 77}}}} {
		_, err := c.makePlan(e, 16)
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%s that does not exist: %v", what, err)
		}
	}
}
