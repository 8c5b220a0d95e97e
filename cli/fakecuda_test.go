//go:build linux && amd64 && !nocuda && !static

package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/internal/testing/fakecuda"
	"fspda/internal/testing/hostrun"
)

// fakeMachine is a machine with fake GPU libraries, and programs that run on it.
type fakeMachine struct {
	t       *testing.T
	library string // folder
	work    string // folder of everything that the programs write
	report  string
	calls   map[string]int // of the last program, by function
}

func newFakeMachine(t *testing.T, v fakecuda.Variant) *fakeMachine {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir, err := fakecuda.Build(v)
	if errors.Is(err, hostrun.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	return &fakeMachine{t: t, library: dir, work: work, report: filepath.Join(work, "report")}
}

// command returns the program with arguments on a machine.
func (b *fakeMachine) command(m fakecuda.Machine, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	cmd, stdout, stderr = exec.Command(os.Args[0], args...), &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1", "XDG_CACHE_HOME="+filepath.Join(b.work, "cache"))
	cmd.Env = append(cmd.Env, m.Env(b.library, b.report)...)
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// run runs the program and reports leaks and misuse of the libraries as test errors.
func (b *fakeMachine) run(m fakecuda.Machine, args ...string) (status int, stdout, stderr string) {
	b.t.Helper()
	cmd, out, errs := b.command(m, args...)
	return b.end(cmd, cmd.Run(), out, errs)
}

// end checks the report of a program that has ended.
func (b *fakeMachine) end(cmd *exec.Cmd, err error, out, errs *bytes.Buffer) (status int, stdout, stderr string) {
	b.t.Helper()
	if err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	r, err := fakecuda.ReadReport(b.report)
	if err != nil {
		b.t.Fatal(err)
	}
	b.calls = r.Calls
	for _, w := range slices.Concat(r.Misuses, r.Leaks, r.Kept) {
		b.t.Errorf("%v: %s", cmd.Args[1:], w)
	}
	if err := os.RemoveAll(b.report); err != nil {
		b.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// must is run for a program that has to succeed.
func (b *fakeMachine) must(m fakecuda.Machine, args ...string) (stdout string) {
	b.t.Helper()
	status, stdout, stderr := b.run(m, args...)
	if status != 0 {
		b.t.Fatalf("%v: exit status %d\n%s%s", args, status, stdout, stderr)
	}
	return stdout
}

// little returns the arguments of a short training.
func little(more ...string) []string {
	return append([]string{"train", "--agents", "4", "--data-train", "80", "--data-test", "20", "--hidden", "6",
		"--batch", "8", "--iterations", "24", "--eval-points", "2", "--quiet"}, more...)
}

// measured returns the numbers of a run except times, and their columns.
func measured(t *testing.T, dir string) (rows [][]float64, columns []string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "metrics.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatalf("%d rows of %s: %v", len(all), f.Name(), err)
	}
	for i, name := range all[0] {
		if strings.HasPrefix(name, "wall") || strings.HasPrefix(name, "virtual") {
			continue
		}
		columns = append(columns, name)
		for j, row := range all[1:] {
			if len(rows) == j {
				rows = append(rows, nil)
			}
			v, err := strconv.ParseFloat(row[i], 64)
			if err != nil {
				v = -1 // empty
			}
			rows[j] = append(rows[j], v)
		}
	}
	return rows, columns
}

// sameNumbers fails unless the numbers of two runs agree within a relative tolerance. The sum of the
// duals consists of rounding errors only, so that it is near zero in both.
func sameNumbers(t *testing.T, a, b string, within float64) {
	t.Helper()
	x, columns := measured(t, a)
	y, _ := measured(t, b)
	if len(x) != len(y) {
		t.Fatalf("%d rows, and %d", len(x), len(y))
	}
	for i := range x {
		for j, name := range columns {
			if name == "loss_scale" || name == "skipped_grads" {
				continue
			}
			if name == "dual_sum" && within > 0 && max(x[i][j], y[i][j]) < 1e-6 {
				continue
			}
			if far := x[i][j] - y[i][j]; !(far <= within*max(x[i][j], 1e-3) && -far <= within*max(x[i][j], 1e-3)) {
				t.Errorf("%s in row %d is %v, and %v", name, i, x[i][j], y[i][j])
			}
		}
	}
}

// The libraries are found and listed, with both GPUs.
func TestFakeCUDADevices(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	out := b.must(fakecuda.Machine{GPUs: 2, Memory: 3e9}, "devices")
	for _, want := range []string{"cuda:1    Fake GPU, 3 GB, compute capability 9.0",
		filepath.Join(b.library, "libcudnn.so.9"), "engine    cuda:0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q:\n%s", want, out)
		}
	}
}

// The self-test passes on the libraries' real interface, in an order of streams that the seed
// gives. FSPDA_LONG=1 runs all of it, in every precision, in some 30 minutes.
func TestFakeCUDASelftest(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	seeds := map[string]int{"fp16": 2}
	only := []string{"--only", "contract/dot,contract/concurrent,contract/kernel/conv,contract/kernel/linear-grad-w," +
		"loss scale,convolutions/conv-grad-w 3×3,algorithms/fspda"}
	if os.Getenv("FSPDA_LONG") != "" {
		seeds, only = map[string]int{"fp32": 0, "tf32": 1, "fp16": 2, "bf16": 0}, nil
	}
	for p, seed := range seeds {
		out := b.must(fakecuda.Machine{Seed: seed}, append([]string{"selftest", "--device", "cuda", "--precision", p},
			only...)...)
		if strings.Count(out, " ok ") < 4 {
			t.Errorf("%s", out)
		}
	}
}

// A run on a GPU equals that on the CPU up to rounding; on two GPUs it has the bits of one GPU,
// with and without peer access, in whatever order streams run.
func TestFakeCUDATrain(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	at := func(name string) string { return filepath.Join(b.work, name) }
	iterations := 5
	if os.Getenv("FSPDA_LONG") != "" {
		iterations = 24
	}
	args := func(name, device string, more ...string) []string {
		return little(append(more, "--iterations", strconv.Itoa(iterations), "--device", device, "--out", at(name))...)
	}
	b.must(fakecuda.Machine{}, args("cpu", "cpu")...)
	b.must(fakecuda.Machine{}, args("one", "cuda")...)
	sameNumbers(t, at("one"), at("cpu"), 1e-5)
	if n := b.calls["cuLaunchCooperativeKernel"]; n < iterations {
		t.Errorf("%d cooperative launches in %d iterations, want one in each at least", n, iterations)
	}
	machines := map[string]fakecuda.Machine{
		"two without ways": {GPUs: 2, Seed: 2, NoPeers: true},
		// the driver refuses to launch blocks together
		"launches later": {Fail: []string{"cuLaunchCooperativeKernel:9:720+"}},
	}
	if os.Getenv("FSPDA_LONG") != "" {
		machines["two"] = fakecuda.Machine{GPUs: 2, Seed: 1}
		machines["eager"] = fakecuda.Machine{Seed: 5}
		machines["launches"] = fakecuda.Machine{Fail: []string{"cuLaunchCooperativeKernel:1:801+"}}
	}
	for name, m := range machines {
		b.must(m, args(name, "cuda")...)
		sameNumbers(t, at(name), at("one"), 0)
	}
	if os.Getenv("FSPDA_LONG") == "" {
		return
	}
	b.must(fakecuda.Machine{}, args("short", "cuda", "--precision", "fp16")...)
	b.must(fakecuda.Machine{GPUs: 2, Seed: 1}, args("short on two", "cuda", "--precision", "fp16")...)
	sameNumbers(t, at("short on two"), at("short"), 0)
}

// Language models train on a GPU as on the CPU, and write text there. The forecast of one has its
// memory.
func TestFakeCUDALanguage(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	at := func(name string) string { return filepath.Join(b.work, name) }
	out := b.must(fakecuda.Machine{Memory: 3e9}, "train", "--data", "synthetic-text", "--model", "gpt-nano", "--layers",
		"1", "--block", "16", "--batch", "1", "--data-test", "100", "--agents", "2", "--device", "cuda", "--dry-run")
	if !strings.Contains(out, "cuda:0: 2 agents need ") || !strings.Contains(out, " activations and workspaces") {
		t.Errorf("the forecast is: %s", out)
	}
	names := []string{"gpt-nano", "llama-nano"}
	if os.Getenv("FSPDA_LONG") == "" {
		names = names[:1] // package cuda trains both
	}
	for _, name := range names {
		args := []string{"train", "--agents", "2", "--data", "synthetic-text", "--data-train", "2000", "--data-test",
			"100", "--model", name, "--layers", "1", "--heads", "2", "--width", "12", "--block", "9", "--batch", "2",
			"--iterations", "3", "--warmup-iterations", "1", "--eval-points", "1", "--quiet", "--metrics", "test"}
		b.must(fakecuda.Machine{}, append(args, "--device", "cpu", "--out", at(name))...)
		b.must(fakecuda.Machine{Seed: 1}, append(args, "--device", "cuda", "--out", at(name+" on a GPU"))...)
		sameNumbers(t, at(name+" on a GPU"), at(name), 1e-4)
		if n := b.calls["cuGraphLaunch"]; n == 0 {
			t.Errorf("%s: no graph was launched", name)
		}
		// longer than the window, so that it slides
		write := []string{"sample", at(name), "--tokens", "12", "--temperature", "0"}
		want := b.must(fakecuda.Machine{}, append(write, "--device", "cpu")...)
		if got := b.must(fakecuda.Machine{}, append(write, "--device", "cuda")...); got != want {
			t.Errorf("%s writes %q on a GPU, and %q", name, got, want)
		}
	}
}

// Residual networks train in every precision, and repeat their bits on request.
func TestFakeCUDAConvolutions(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("TestFakeCUDASelftest calls the convolutions: set FSPDA_LONG=1")
	}
	b := newFakeMachine(t, fakecuda.Variant{})
	args := []string{"train", "--agents", "2", "--data", "synthetic-images", "--crop", "8", "--model", "resnet20",
		"--data-train", "20", "--data-test", "10", "--batch", "4",
		"--iterations", "3", "--eval-points", "1", "--quiet", "--metrics", "test", "--bn", "local"}
	for _, p := range []string{"fp32", "tf32", "fp16", "bf16"} {
		first, again := filepath.Join(b.work, p), filepath.Join(b.work, p+" again")
		more := []string{"--device", "cuda", "--precision", p, "--deterministic", "--out"}
		b.must(fakecuda.Machine{}, append(slices.Concat(args, more), first)...)
		b.must(fakecuda.Machine{Seed: 2, GPUs: 2}, append(slices.Concat(args, more), again)...)
		sameNumbers(t, first, again, 0)
	}
}

// Failures are reported with advice.
func TestFakeCUDAFaults(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	for name, c := range map[string]struct {
		m    fakecuda.Machine
		args []string
		says []string
	}{
		"out of memory": {fakecuda.Machine{Memory: 20 << 20}, nil, []string{"memory"}},
		"no GPU":        {fakecuda.Machine{GPUs: -1}, nil, []string{"no GPU", "nvidia-smi"}},
		"GPU 3 of 2": {fakecuda.Machine{GPUs: 2}, []string{"--device", "cuda:3"},
			[]string{"there is no GPU 3", "2"}},
		"old driver": {fakecuda.Machine{Driver: 11080}, nil, []string{"11.8", "update the driver"}},
		"no cubin": {fakecuda.Machine{Fail: []string{"cuModuleLoadDataEx:3:209"}}, nil,
			[]string{"cuModuleLoadDataEx", "209"}},
		"bfloat16 on sm70": {fakecuda.Machine{Capability: 75}, []string{"--precision", "bf16"}, []string{"fp16"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &fakeMachine{t: t, library: b.library, work: t.TempDir()}
			b.report = filepath.Join(b.work, "report")
			status, _, stderr := b.run(c.m,
				little(append([]string{"--device", "cuda", "--out", filepath.Join(b.work, "run")}, c.args...)...)...)
			if status == 0 {
				t.Error("it succeeds")
			}
			for _, want := range c.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("no %q in: %s", want, stderr)
				}
			}
		})
	}
}

// Errors about libraries that lack a function, or have no kernels for the GPU, name the library and
// what to install. Each case builds its own libraries.
func TestFakeCUDAVersions(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("builds libraries of two more kinds: set FSPDA_LONG=1")
	}
	lacking := newFakeMachine(t, fakecuda.Variant{Without: []string{"cublasGemmEx"}})
	status, _, stderr := lacking.run(fakecuda.Machine{}, little("--device", "cuda", "--out",
		filepath.Join(lacking.work, "run"))...)
	if status == 0 || !strings.Contains(stderr, "cublasGemmEx") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	old := newFakeMachine(t, fakecuda.Variant{Major: 12})
	volta := fakecuda.Machine{Capability: 70, CUDNN: 91100, Driver: 13000}
	if out := old.must(volta, "devices"); !strings.Contains(out, "nvidia-cudnn-cu12<9.11") ||
		!strings.Contains(out, "libcublas.so.12") {
		t.Errorf("%s", out)
	}
	// without convolutions
	old.must(volta, little("--device", "cuda", "--precision", "fp16", "--out", filepath.Join(old.work, "run"))...)
	args := []string{"train", "--agents", "2", "--data", "synthetic-images", "--crop", "8", "--model", "resnet20",
		"--data-train", "20", "--data-test", "10", "--batch", "4",
		"--iterations", "2", "--eval-points", "1", "--quiet", "--device", "cuda", "--precision", "fp16", "--out"}
	if status, _, stderr := old.run(volta, append(args, filepath.Join(old.work, "without"))...); status == 0 ||
		!strings.Contains(stderr, "cuDNN") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	volta.CUDNN = 91002
	old.must(volta, append(args, filepath.Join(old.work, "with"))...)
}

// A run that loses its GPU ends with advice, and the CPU resumes it from its checkpoint with the
// result of an uninterrupted run.
func TestFakeCUDALoss(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("trains three times: set FSPDA_LONG=1")
	}
	b := newFakeMachine(t, fakecuda.Variant{})
	lost, whole, gone := filepath.Join(b.work, "lost"), filepath.Join(b.work, "whole"), filepath.Join(b.work, "gone")
	long := func(more ...string) []string {
		return little(append([]string{"--iterations", "500", "--checkpoint-every", "0.001"}, more...)...)
	}
	cmd, _, errs := b.command(fakecuda.Machine{Vanish: gone}, long("--device", "cuda", "--out", lost)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(filepath.Join(lost, "checkpoints"))
	for len(checkpointsOf(t, lost)) == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(errs.String(), "--out "+lost+" --resume") {
		t.Fatalf("%v: %s", err, errs)
	}
	if err := os.RemoveAll(b.report); err != nil { // what was on the GPU is not given back
		t.Fatal(err)
	}
	b.must(fakecuda.Machine{}, "train", "--out", lost, "--resume", "--device", "cpu", "--quiet")
	b.must(fakecuda.Machine{}, long("--device", "cpu", "--out", whole)...)
	sameNumbers(t, lost, whole, 1e-3)
}

// checkpointsOf lists the checkpoints of a run.
func checkpointsOf(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "checkpoints", "iter-*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A signal ends a run in order, with all resources released.
func TestFakeCUDASignal(t *testing.T) {
	b := newFakeMachine(t, fakecuda.Variant{})
	dir := filepath.Join(b.work, "run")
	cmd, out, errs := b.command(fakecuda.Machine{}, little("--iterations", "1000000", "--eval-points", "100000",
		"--device", "cuda", "--out", dir)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(filepath.Join(dir, "metrics.jsonl"))
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := b.end(cmd, cmd.Wait(), out, errs); status != command.ExitStopped {
		t.Errorf("exit status %d, want %d\n%s%s", status, command.ExitStopped, stdout, stderr)
	}
	b.must(fakecuda.Machine{}, "train", "--out", dir, "--resume", "--iterations", "1000000", "--dry-run", "--quiet")
}
