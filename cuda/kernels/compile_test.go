package kernels_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"fspda/cuda/dynlib"
	"fspda/cuda/kernels"
	"fspda/cuda/nvrtc"
	"fspda/internal/testing/ptxas"
)

// libraries returns the NVRTC versions of this machine, newest first.
func libraries(t *testing.T) []*nvrtc.Library {
	t.Helper()
	var all []*nvrtc.Library
	var missing error
	for _, major := range []int{13, 12} {
		h, err := dynlib.System().Open(dynlib.NVRTC(major))
		if err != nil {
			missing = err
			continue
		}
		l, err := nvrtc.Open(h)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if all == nil {
		t.Skipf("%v (%s names a folder with it)", missing, dynlib.PathVariable)
	}
	return all
}

const (
	// maxRegisters lets three blocks of 256 threads run on a multiprocessor, enough to keep its
	// memory busy. Two suffice for kernels with many rows in flight per thread, and for attention,
	// which computes on tiles in registers. Matrix products need registers, and the megakernel has one
	// block per multiprocessor.
	maxRegisters           = 80
	maxRegistersRows       = 128
	maxRegistersGemm       = 168
	maxRegistersWide       = 255 // products and heads that have a multiprocessor for themselves
	maxRegistersMegakernel = 255
	// maxSpilled is the number of bytes that a kernel may spill. The gradients of attention spill 12
	// and, on sm_70, those of layer norms as many as this.
	maxSpilled = 16
	// Attention on tensor cores has 128 threads, two blocks on a multiprocessor. It spills addresses
	// of the next tile, which are loaded once for each tile, outside of the products.
	maxRegistersMMA, maxSpilledMMA = 255, 80
)

// Every kernel compiles for V100, A100 and H100 without spilling registers.
func TestCompile(t *testing.T) {
	all := libraries(t)
	cache := &nvrtc.Cache{Dir: t.TempDir()}
	if dir, err := nvrtc.DefaultDir(); err == nil {
		cache.Dir = dir
	}
	for _, arch := range []string{"sm_70", "sm_80", "sm_90"} {
		t.Run(arch, func(t *testing.T) {
			for _, l := range all {
				if l.Supports(arch) {
					cache.Version = l.Cache("").Version
					compileAll(t, l, cache, arch)
					return
				}
			}
			t.Skipf("NVRTC %d.%d does not compile for %s", all[0].Major, all[0].Minor, arch)
		})
	}
}

func compileAll(t *testing.T, l *nvrtc.Library, cache *nvrtc.Cache, arch string) {
	made, err := kernels.Compile(l, cache, arch)
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]ptxas.Usage{}
	for unit, b := range made {
		if !strings.HasPrefix(string(b.Cubin), "\x7fELF") {
			t.Errorf("%s: the output is not a cubin", unit)
		}
		maps.Copy(uses, ptxas.UsageOf(b.Log))
		for line := range strings.Lines(b.Log) {
			// NVRTC 12 warns that it will drop sm_70
			if strings.Contains(line, "warning") && !strings.Contains(line, "deprecated") {
				t.Errorf("%s: the compiler warns: %s", unit, line)
			}
		}
	}
	var report strings.Builder
	for _, k := range kernels.All() {
		u, ok := uses[k.Name]
		fmt.Fprintf(&report, "%-32s %3d registers, %4d bytes of stack, %3d spilled, %5d shared\n", k.Name, u.Registers,
			u.Stack, u.Spilled, u.Shared)
		most, spilled := maxRegisters, maxSpilled
		switch {
		case k.Unit == "attention_mma.cu":
			most, spilled = maxRegistersMMA, maxSpilledMMA
		case wideLoops[k.Name].all > 0, k.Unit == "gemm_bytes.cu", k.Name == "head":
			most = maxRegistersWide
		case strings.HasPrefix(k.Name, "gemm_"):
			most = maxRegistersGemm
		case strings.HasPrefix(k.Name, "norm_grad"), strings.HasPrefix(k.Name, "norm_apply_two"),
			k.Unit == "attention.cu":
			most = maxRegistersRows
		case k.Unit == "megakernel.cu":
			most = maxRegistersMegakernel
		}
		if !ok || u.Registers == 0 || u.Registers > most || u.Spilled > spilled {
			t.Errorf("%s of %s uses %+v (found: %v), want at most %d registers and %d bytes spilled", k.Name, k.Unit, u,
				ok, most, spilled)
		}
	}
	if os.Getenv("FSPDA_LONG") != "" || testing.Verbose() {
		t.Log("\n" + report.String())
	}
	checkStreams(t, made)
	checkLoads(t, made)
	checkWide(t, made)
	checkExact(t, made, arch)
	checkOverlap(t, made, arch)
}
