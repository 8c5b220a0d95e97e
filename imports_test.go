package fspda_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allowed says which packages of this module each package may import; what is not listed is
// forbidden. Imports go one way: cmd → cli → bench → train → {train/algo, dist, data} → device ←
// {cpu, model}.
var allowed = map[string][]string{
	"internal/pages":     {},
	"internal/rng":       {},
	"internal/spelling":  {},
	"internal/freeport":  {},
	"internal/lockfile":  {},
	"internal/cgroup":    {},
	"internal/bounded":   {},
	"internal/wholefile": {},
	"internal/units":     {},
	"internal/pickle":    {},
	"internal/sharedmem": {},
	"device":             {},
	"device/plan":        {"device"}, // the compilers of networks and of devices share it
	"device/devicetest": {
		"device", "device/signature", "internal/rng",
	},
	"cpu": {
		"cpu/attention", "cpu/conv", "cpu/embed", "cpu/gemm", "cpu/isa", "cpu/kernel", "cpu/norm", "cpu/tile",
		"cpu/vec", "device", "device/plan", "device/signature", "internal/pages",
	},
	"cpu/attention": {"cpu/isa", "cpu/kernel", "cpu/tile", "cpu/vec", "device"},
	"cpu/embed":     {"cpu/kernel", "cpu/vec", "device"},
	"cpu/conv":      {"cpu/isa", "cpu/kernel", "cpu/tile", "device"},
	"cpu/gemm":      {"cpu/isa", "cpu/kernel", "cpu/tile", "cpu/vec", "device", "internal/rng"},
	"cpu/isa":       {},
	"cpu/kernel":    {"device", "device/signature", "internal/pages"},
	"cpu/norm":      {"cpu/isa", "cpu/kernel", "cpu/tile", "cpu/vec", "device"},
	"cpu/tile":      {"cpu/isa", "cpu/kernel"},
	"cpu/vec":       {"cpu/isa", "cpu/kernel", "cpu/tile", "device", "internal/rng"},
	"model":         {"device", "device/plan", "internal/rng"},
	"model/onnx":    {"device", "model"}, // apart from model, which needs no Protocol Buffers
	// apart from model, which starts no processes
	"model/external": {"data", "device", "internal/sharedmem", "model"},
	"data": {
		"data/format", "data/images", "data/text", "device", "internal/bounded", "internal/pages", "internal/pickle",
		"internal/rng",
		"internal/spelling",
	},
	"data/format": {},
	"data/text": {"data/format", "data/text/bpe", "internal/bounded", "internal/pickle", "internal/rng",
		"internal/wholefile"},
	"data/text/bpe":       {},
	"data/text/gpt2":      {"data/text"}, // apart, for its vocabulary
	"data/images":         {"data/format", "data/images/jpeg", "internal/bounded"},
	"data/images/jpeg":    {},
	"data/images/arrow":   {},
	"data/images/packed":  {"data/images", "data/images/arrow", "internal/bounded", "internal/wholefile"},
	"data/images/parquet": {"data/images", "data/images/arrow", "internal/bounded"},
	"data/fetch":          {"internal/bounded", "internal/wholefile"},
	"dist/fewbits":        {},
	"dist/strata":         {"internal/rng"},
	"dist": {"device", "dist/fewbits", "dist/strata", "internal/bounded", "internal/rng",
		"internal/spelling"},
	"dist/allreduce":      {"dist"},
	"dist/discover":       {"internal/bounded"}, // apart from link and NATS: an agent may be found in another way
	"dist/discover/nats":  {"dist/discover"},
	"dist/link":           {"dist", "dist/discover", "internal/bounded"},
	"train/algo":          {"device", "train/setting"},
	"train/algo/algotest": {"device", "device/devicetest", "train/algo"}, // for tests of devices
	"train/config": {
		"data", "dist", "internal/bounded", "internal/cgroup", "internal/rng", "internal/spelling", "model",
		"train/algo", "train/membership", "train/setting", "train/simnet",
	},
	"train/council":    {"train/config", "train/membership", "train/simnet"},
	"train/membership": {},
	// apart from membership, which needs no Raft
	"train/membership/agreement": {"train/membership", "dist", "internal/bounded", "internal/wholefile"},
	"train/setting":              {"internal/spelling"},
	"train/metric":               {},
	"train/evaluate": {
		"train/metric",
		"data", "data/text", "device", "internal/rng", "train/algo", "train/config", "train/generate", "train/memory",
		"train/snapshot",
	},
	"train/memory":   {"internal/cgroup", "device", "dist", "train/algo", "train/config"},
	"train/generate": {"device", "internal/rng"},
	"train/runfolder": {
		"train/membership", "train/metric", "data/text", "device", "dist", "internal/bounded", "internal/lockfile",
		"internal/rng",
		"internal/wholefile", "train/algo", "train/config", "train/evaluate", "train/memory", "train/safetensors",
		"train/simnet", "train/snapshot", "train/tensorboard",
	},
	"train/simnet":      {"dist", "internal/bounded", "internal/rng", "internal/spelling", "train/algo"},
	"train/snapshot":    {"device", "dist", "train/algo", "train/simnet"},
	"train/vectorpool":  {"train/algo", "dist", "device"},
	"train/clip":        {"train/config", "device", "dist"},
	"train/control":     {},
	"train/live":        {"train/algo", "dist", "device", "internal/rng"},
	"train/process":     {"train/metric", "dist", "internal/wholefile", "train/snapshot"},
	"train/safetensors": {"internal/bounded"},
	"train/tensorboard": {},
	"train": {
		"train/council", "train/membership",
		"train/metric",
		"data", "device", "dist", "dist/allreduce", "internal/rng",
		"internal/units", "model", "train/algo", "train/clip",
		"train/config", "train/control", "train/evaluate", "train/vectorpool", "train/live", "train/memory",
		"train/process", "train/runfolder",
		"train/setting", "train/simnet", "train/snapshot", "web",
	},
	"web": {
		"train/metric", "internal/bounded", "internal/lockfile", "internal/units", "internal/wholefile", "train/config",
		"train/setting",
	},
	"web/browsertest": {},
	"bench": {
		"train/metric",
		"internal/cgroup", "bench/measure", "data", "device", "dist", "internal/bounded", "internal/rng",
		"internal/units", "train", "train/config", "train/memory", "train/runfolder",
	},
	"bench/measure/bare": {"bench/measure"},
	"bench/measure":      {"data", "device", "device/devicetest", "dist", "internal/rng", "train"},
	"bench/theory":       {"device", "device/devicetest", "dist", "internal/rng", "train/algo"},
	// runs the program itself: apart from what it measures
	"bench/acceptance": {"bench", "bench/measure", "train", "internal/rng", "internal/wholefile"},
	"docs":             {},
	"cmd/fspda":        {"cli"},
	// tests of an optimizer and a compressor that a program registers
	"cli/ownparts": {},
	"cli": {
		"cli/benchcmd", "cli/command", "cli/datacmd", "cli/devicecmd", "cli/docscmd", "cli/experimentcmd",
		"cli/modelcmd", "cli/runscmd", "cli/setup", "cli/traincmd", "data", "model", "train",
		"train/setting",
	},
	"cli/ownmethod": {"cli", "device", "train/algo", "train/setting"}, // a test: a method of a program's own
	"cli/benchcmd": {
		"bench/acceptance", "bench/measure", "bench/measure/bare", "cli/command", "cli/setup", "cpu", "cuda", "data",
		"data/text", "device", "device/devicetest", "dist", "dist/discover/nats", "dist/link", "internal/rng", "model",
		"train", "train/config", "train/memory", "train/runfolder",
	},
	"cli/command": {"internal/units", "internal/wholefile", "train", "train/config"},
	"cli/datacmd": {
		"cli/command", "data", "data/fetch", "data/images", "data/images/packed", "data/images/parquet", "data/text",
		"data/text/gpt2",
	},
	"cli/devicecmd": {"cli/command", "cli/setup", "cuda", "device", "selftest", "train"},
	"cli/docscmd":   {"cli/command", "docs", "web", "train/config"},
	"cli/experimentcmd": {"bench", "bench/theory", "cli/command", "cli/setup", "data", "device", "internal/bounded",
		"internal/lockfile", "internal/cgroup", "internal/wholefile",
		"train", "web"},
	"cli/modelcmd": {
		"cli/command",
		"cli/setup",
		"cli/weights",
		"data",
		"data/images",
		"data/text",
		"data/text/gpt2",
		"device",
		"model",
		"train",
		"train/config",
		"train/generate", "train/runfolder",
	},
	"cli/runscmd": {"cli/command", "train", "web", "train/runfolder"},
	"cli/setup": {
		"internal/cgroup", "cli/weights", "cpu", "cuda", "data", "data/text/gpt2", "device", "internal/bounded",
		"model", "model/external", "train", "train/config", "train/memory",
	},
	"cli/traincmd": {
		"internal/bounded", "internal/cgroup", "internal/freeport", "internal/lockfile", "internal/wholefile",
		"cli/command", "cli/setup", "data", "device", "dist", "dist/discover", "dist/discover/nats", "dist/link",
		"internal/rng", "internal/units", "model", "model/external", "train",
		"train/membership/agreement", "train/memory", "train/process", "web", "train/config", "train/runfolder",
	},
	"cli/weights": {"internal/bounded", "internal/pickle", "internal/wholefile", "model", "model/onnx", "train",
		"train/safetensors"},

	// on any device, without go test
	"selftest": {"cpu", "cuda/kernels/kerneltest", "dist", "device", "device/devicetest", "internal/rng",
		"model", "train/algo/algotest"},
	// beside device, which has no code
	"device/signature": {"device"},

	"cuda/dynlib":             {}, // libraries opened at run time, for all below cuda
	"cuda/nvrtc":              {"cuda/dynlib", "internal/wholefile"},
	"cuda/kernels":            {"cuda/nvrtc", "device", "internal/rng"},
	"cuda/kernels/kerneltest": {"cuda/kernels", "device", "dist", "internal/rng"}, // for tests of devices
	"cuda/driver":             {"cuda/dynlib"},
	"cuda/cublas":             {"cuda/dynlib", "cuda/driver"},
	"cuda/cudnn":              {"cuda/dynlib", "cuda/driver", "internal/wholefile"},
	"cuda/compiler":           {"cuda/cublas", "cuda/kernels", "device", "device/plan", "device/signature"},
	"cuda/executor":           {"cuda/driver", "cuda/kernels", "cuda/nvrtc"},
	"cuda/megakernel":         {"cuda/driver", "cuda/executor", "cuda/kernels"}, // apart: not every GPU runs it
	"cuda/orthogonal": {"cuda/compiler", "cuda/cublas", "cuda/driver", "cuda/executor", "cuda/kernels",
		"device"},
	"cuda": {"cuda/orthogonal", "cuda/compiler", "cuda/executor", "cuda/megakernel", "cuda/dynlib", "cuda/nvrtc",
		"cuda/kernels", "cuda/driver", "cuda/cublas", "cuda/cudnn", "device", "device/signature", "internal/wholefile"},

	// for tests only, see TestProductHasNoStage
	// a simulated network with faults, and the contract of every transport
	"internal/testing/disttest":   {"device", "device/devicetest", "dist", "internal/freeport", "internal/rng"},
	"internal/testing/doctable":   {},                                           // tables of the documentation
	"internal/testing/imagetest":  {},                                           // pictures to decode
	"internal/testing/fakecuda":   {"cuda/kernels", "internal/testing/hostrun"}, // NVIDIA's libraries on the host
	"internal/testing/fakecudnn":  {"cuda/cudnn", "cuda/driver"},                // the graph API of cuDNN in Go
	"internal/testing/fakegpu":    {"cuda/driver", "cuda/dynlib"},               // a GPU in host memory
	"internal/testing/golden":     {"device", "internal/testing/realdata"},      // results of PyTorch, from a file
	"internal/testing/headertest": {"cuda/dynlib"},                              // tables against NVIDIA's headers
	"internal/testing/hostrun":    {"cuda/dynlib", "cuda/kernels"},              // kernels on the host
	"internal/testing/kerneltest": {"cpu/kernel", "internal/rng"},               // operands, bits and fenced memory
	"internal/testing/ptxas":      {},                                           // the log of NVIDIA's assembler
	"internal/testing/realdata":   {},                                           // real data sets
}

// checks are the packages with the checks of a device that both tests and the program itself run
// (fspda selftest), and the float64 device of fspda theory.
var checks = []string{"cuda/kernels/kerneltest", "device/devicetest", "train/algo/algotest"}

// The program contains no fakes, host emulators or data of tests.
func TestProductHasNoStage(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/fspda").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for _, p := range strings.Fields(string(out)) {
		name, ours := strings.CutPrefix(p, "fspda/")
		if !ours {
			continue
		}
		packages++
		if strings.HasPrefix(name, "internal/testing/") || strings.HasSuffix(name, "test") && name != "selftest" &&
			!slices.Contains(checks, name) {
			t.Errorf("cmd/fspda depends on %s, a package for tests: move the code that it needs out of there", name)
		}
	}
	if packages < 50 {
		t.Errorf("cmd/fspda depends on %d packages of this module: go list said something else", packages)
	}
}

// processes are the packages that may depend on gRPC or NATS: those of runs of many processes. A
// program whose agents are in one process compiles neither.
var processes = []string{"bench/measure/bare", "cli", "cli/benchcmd", "cli/traincmd", "cmd/fspda", "dist/discover/nats",
	"dist/link"}

// ofProcesses is the beginning of the path of a package of gRPC or NATS.
var ofProcesses = regexp.MustCompile(`^(google\.golang\.org/grpc|github\.com/nats-io)/`)

type pkg struct {
	ImportPath    string
	Imports, Deps []string
}

func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Deps", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for n := 0; ; n++ {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			if n < len(allowed) {
				t.Errorf("go list found %d packages, the table has %d", n, len(allowed))
			}
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "fspda/")
		may, ok := allowed[name]
		if !ok && name != p.ImportPath {
			t.Errorf("package %s has no line in the table of imports: add one, and say in its doc.go why it is a "+
				"package of its own", name)
		}
		for _, i := range p.Imports {
			if to, ours := strings.CutPrefix(i, "fspda/"); ours && !slices.Contains(may, to) {
				t.Errorf("%s imports %s: packages may import only what the table of imports allows", name, to)
			}
			if i == "C" {
				t.Errorf("%s uses cgo: the product needs no C compiler", name)
			}
		}
		if needs := slices.ContainsFunc(p.Deps, ofProcesses.MatchString); needs != slices.Contains(processes, name) {
			t.Errorf("%s depends on gRPC or NATS: %v, want the opposite: only packages of runs of many processes do, "+
				"which the variable processes lists", name, needs)
		}
	}
}
