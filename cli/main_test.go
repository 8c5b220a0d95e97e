//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/bench/measure"
	"fspda/cli/command"
	"fspda/internal/rng"
	"fspda/train"
	"fspda/web"
)

// TestMain lets the test binary act as the program, for tests that need processes.
func TestMain(m *testing.M) {
	web.RunFormats = []string{"svg"}
	switch os.Getenv("FSPDA_TEST_AS_PROGRAM") {
	case "clock":
		tellTime()
		return
	case "briefly":
		os.Exit(briefly(os.Args[1:]))
	case "1":
		if path := os.Getenv("FSPDA_TEST_PROFILE"); path != "" {
			os.Exit(profiled(path))
		}
		Main()
		return
	}
	os.Exit(m.Run())
}

// tellTime answers every line with the wall clock and the monotonic time since its start, in
// seconds.
func tellTime() {
	begin := time.Now()
	for sc := bufio.NewScanner(os.Stdin); sc.Scan(); {
		t := time.Now()
		fmt.Println(t.Unix(), int(math.Round(t.Sub(begin).Seconds())))
	}
}

// profiled runs the program with a CPU profile.
func profiled(path string) int {
	f, err := os.Create(path)
	if err == nil {
		err = pprof.StartCPUProfile(f)
	}
	if err != nil {
		panic(err)
	}
	status := Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	pprof.StopCPUProfile()
	if err := f.Close(); err != nil {
		panic(err)
	}
	return status
}

// call runs the program in this process.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Run(context.Background(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// quick returns the arguments of a run of a second or less.
func quick(more ...string) []string {
	return append([]string{"train", "--data-train", "400", "--data-test", "100", "--hidden", "6", "--agents", "5",
		"--batch", "16", "--iterations", "40", "--eval-points", "4"}, more...)
}

func TestTrainLeavesARunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, stdout, stderr := call(t, quick("--out", dir)...)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	for _, word := range []string{"test accuracy", "consensus error", "bits sent", "sum of duals", "report.html",
		"finished"} {
		if !strings.Contains(stdout, word) {
			t.Errorf("the table does not mention %q:\n%s", word, stdout)
		}
	}
	if n := strings.Count(stderr, "evaluation"); n != 5 {
		t.Errorf("%d log lines of evaluations, want 5:\n%s", n, stderr)
	}
	for _, name := range []string{"config.yaml", "metrics.jsonl", "metrics.csv", "summary.json", "report.html",
		"shards.json", "plots/training_loss-bits.svg", "plots/test_accuracy-iteration.svg",
		"checkpoints/iter-000000040/manifest.json"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "tensorboard", "events.out.tfevents.*")); len(files) != 1 {
		t.Errorf("event files %v", files)
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sum map[string]any
	if err := json.Unmarshal(text, &sum); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields(`algo agents iterations wall_s iterations_per_s test_acc_avg
		test_acc_min test_acc_mean train_loss_avg train_loss_worst grad_sq_worst consensus dual_sum bits_total
		bits_reference wire_bytes device seed version`) {
		if _, ok := sum[key]; !ok {
			t.Errorf("summary.json has no %s", key)
		}
	}
	if sum["device"] != "cpu" || sum["iterations"] != 40.0 {
		t.Errorf("device %v, iterations %v", sum["device"], sum["iterations"])
	}
}

// A dry run prints a forecast and writes nothing.
func TestDryRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	status, stdout, stderr := call(t, quick("--out", dir, "--dry-run")...)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	for _, want := range []string{"40 iterations in about", "images/s", "bit sent", "of memory", "5 agents"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("nothing about %q in\n%s", want, stdout)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it made a run folder")
	}
	status, stdout, _ = call(t, quick("--out", dir, "--dry-run", "--json")...)
	var f train.Forecast
	if err := json.Unmarshal([]byte(stdout), &f); status != 0 || err != nil || f.Iterations != 40 || f.Bits <= 0 ||
		f.ImagesPerS <= 0 {
		t.Errorf("exit status %d, %v, %+v", status, err, f)
	}
	if status, _, stderr := call(t, quick("--out", dir)...); status != 0 ||
		!strings.Contains(stderr, "forecast: 40 iterations") || !strings.Contains(stderr, " images/s\n") {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	if status, stdout, _ := call(t, quick("--out", dir, "--dry-run")...); status != 0 ||
		!strings.Contains(stdout, "nothing left") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
}

// The config.yaml of a run repeats the run with the same numbers.
func TestConfigReplays(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	if status, _, stderr := call(t, quick("--out", first, "--quiet", "--seed", "7", "--partition",
		"dirichlet(0.5)")...); status != 0 || stderr != "" {
		t.Fatalf("exit status %d, %s", status, stderr)
	}
	if status, stdout, stderr := call(t, "train", "-c", filepath.Join(first, "config.yaml"), "--out", second,
		"--quiet"); status != 0 || stdout+stderr != "" {
		t.Fatalf("exit status %d, %s%s", status, stdout, stderr)
	}
	if a, b := metricRows(t, first), metricRows(t, second); a != b {
		t.Errorf("the runs differ:\n%s\n%s", a, b)
	}
}

var wall = regexp.MustCompile(`"(wall_s|checksum)":[^,}]*`)

func metricRows(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return wall.ReplaceAllString(string(text), "")
}

func TestFlagsWinOverFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(file, []byte(
		"alpha: 0.02\nseed: 5\nhidden: [6]\ndata_train: 400\ndata_test: 100\nagents: 5\nbatch: 16\niterations: 4\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	if status, _, stderr := call(t, "train", "-c", file, "--seed", "9", "--eval-points", "1", "--out", out,
		"--quiet"); status != 0 {
		t.Fatal(stderr)
	}
	c, err := train.ReadConfig(out)
	if err != nil {
		t.Fatal(err)
	}
	if c.Alpha != 0.02 || c.Seed != 9 || c.Iterations != 4 || c.Gamma != train.Default().Gamma || c.Eta.Auto {
		t.Errorf("%+v", c)
	}
}

func TestJSON(t *testing.T) {
	status, stdout, stderr := call(t, quick("--json", "--out", filepath.Join(t.TempDir(), "run"))...)
	var sum train.Summary
	if err := json.Unmarshal([]byte(stdout), &sum); status != 0 || err != nil || sum.Status != train.Finished {
		t.Fatalf("exit status %d, %v\n%s", status, err, stdout)
	}
	for line := range strings.Lines(stderr) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

// Runs without --out take the next free folder, and --resume finds the latest unfinished one.
func TestFolderNames(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, want := range []string{"runs/fspda-sa-synthetic-1", "runs/fspda-sa-synthetic-2"} {
		if status, _, stderr := call(t, quick("--quiet")...); status != 0 {
			t.Fatal(stderr)
		}
		if _, err := os.Stat(filepath.Join(want, "summary.json")); err != nil {
			t.Error(err)
		}
	}
	if status, _, stderr := call(t, "train", "--resume"); status != command.ExitBadInput ||
		!strings.Contains(stderr, "no unfinished run") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	if err := os.Remove("runs/fspda-sa-synthetic-1/summary.json"); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, "train", "--resume", "--quiet"); status != 0 {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	if _, err := os.Stat("runs/fspda-sa-synthetic-1/summary.json"); err != nil {
		t.Error(err)
	}
}

// If the default folder of runs is no folder, the program reports that at once.
func TestRunsIsAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(command.RunsDir, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, quick()...); status != command.ExitBadInput ||
		!strings.Contains(stderr, "not a directory") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}

// If the report cannot be written, the run is still finished, and the report can be made later.
func TestReportWithoutRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, quick("--out", dir, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	plots := filepath.Join(dir, "plots")
	if err := errors.Join(os.RemoveAll(plots), os.WriteFile(plots, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, quick("--out", dir, "--quiet", "--resume")...); status != command.ExitBadInput ||
		!strings.Contains(stderr, "--resume") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	if err := os.Remove(plots); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, quick("--out", dir, "--quiet", "--resume")...); status != 0 {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}

// An interrupted measurement ends like any other command, and one without time is refused.
func TestBenchStepStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	if status := Run(ctx, []string{"bench", "step", "--data-train", "600", "--batch", "8"}, &out,
		&errs); status != command.ExitStopped || out.Len() > 0 {
		t.Errorf("interrupted: exit status %d\n%s%s", status, out.String(), errs.String())
	}
	if status, _, stderr := call(t, "bench", "step", "--data-train", "600", "--batch", "8", "--time",
		"0s"); status != command.ExitBadInput || !strings.Contains(stderr, "time 0s") {
		t.Errorf("no time: exit status %d, %s", status, stderr)
	}
}

// Bad input gives exit status 2 and an error that says what to do, and writes nothing.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	pairs := write("pairs.txt", "0 1\n2 3\n")
	out := filepath.Join(dir, "run")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"unknown command": {[]string{"trian"}, []string{`"trian"`, "did you mean train?"}},
		"unknown flag":    {quick("--desnity", "0.1"), []string{"--desnity", "did you mean --density?"}},
		"argument":        {quick("0.1"), []string{"unexpected argument"}},
		"no processes":    {[]string{"up", "-n", "0"}, []string{"agents 0"}},
		"not a number":    {quick("--alpha", "big"), []string{"--alpha"}},
		"unknown key": {quick("-c", write("a.yaml", "desnity: 0.1")),
			[]string{"a.yaml", `did you mean "density"?`}},
		"no config":    {quick("-c", filepath.Join(dir, "none.yaml")), []string{"none.yaml"}},
		"density 0":    {quick("--density", "0"), []string{"density 0", "above 0 and at most 1"}},
		"density 1.5":  {quick("--density", "1.5"), []string{"density 1.5", "above 0 and at most 1"}},
		"no folder":    {quick("--data", "mnist"), []string{"data mnist"}},
		"empty folder": {quick("--data", "mnist", "--data-dir", empty), []string{"train-images-idx3-ubyte", "empty"}},
		"disconnected": {quick("--agents", "4", "--graph", "file("+pairs+")"),
			[]string{"graph", "connected components"}},
		"gamma":             {quick("--gamma", "1.1"), []string{"gamma 1.1", "stable region"}},
		"batch":             {quick("--batch", "500"), []string{"batch 500", "80"}},
		"nothing to resume": {quick("--resume"), []string{"no run to resume"}},
		"device":            {quick("--device", "cuda"), []string{"device", "cuda", "cpu"}},
		"network":           {quick("--model", "resnet51"), []string{`model "resnet51"`, "did you mean resnet"}},
		"hidden layers":     {quick("--model", "resnet20", "--hidden", "64"), []string{"hidden 64", "needs model mlp"}},
		"activation": {[]string{"train", "--model", "resnet20", "--activation", "relu"},
			[]string{"activation relu", "needs model mlp"}},
		"gamma of dsgd": {quick("--algo", "dsgd", "--gamma", "0.3"),
			[]string{"gamma 0.3: has no effect on this run", "fspda-sa, fspda-storm, fspda-sa-sketch, fspda-sa-ef, " +
				"fspda-async, fspda-async-storm or gasloc"}},
		"theta in a file": {quick("-c", write("theta.yaml", "theta: 0.4")), []string{"theta 0.4",
			"dsgd, beer, choco, ticopd or docom"}},
		"no schedule": {quick("--warmup", "2"), []string{"warmup 2", "needs schedule cosine"}},
		"files of which set": {quick("--data-dir", empty), []string{"data_dir " + empty,
			"add data, which is mnist, cifar10, cifar100, fashion-mnist, imagenet, folder, writers or text"}},
		"files of mnist": {[]string{"train", "--data-dir", filepath.Dir(write("train-images-idx3-ubyte", ""))},
			[]string{"data mnist", "train-labels-idx1-ubyte"}},
		"unknown benchmark": {[]string{"bench", "stpe"}, []string{"did you mean step?"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if args[0] == "train" {
				args = append(slices.Clone(args), "--out", out)
			}
			status, stdout, stderr := call(t, args...)
			if status != command.ExitBadInput || stdout != "" {
				t.Errorf("exit status %d, stdout %q", status, stdout)
			}
			for _, w := range c.want {
				if !strings.Contains(stderr, w) {
					t.Errorf("the error does not mention %q: %s", w, stderr)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("a run folder was made")
			}
		})
	}
}

func TestDivergedExits3(t *testing.T) {
	status, stdout, stderr := call(t, quick("--alpha", "1e7", "--activation", "relu", "--out",
		filepath.Join(t.TempDir(), "run"))...)
	if status != command.ExitDiverged || !strings.Contains(stderr, "lower alpha") || !strings.Contains(stdout,
		"diverged") {
		t.Errorf("exit status %d\n%s\n%s", status, stdout, stderr)
	}
}

// A process that is stopped by signals at arbitrary moments and resumed until it is done has the
// metrics of an uninterrupted run.
func TestSignals(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	args := quick("--iterations", "6000", "--eval-points", "30", "--quiet")
	if status, _, stderr := call(t, append(args, "--out", filepath.Join(dir, "whole"))...); status != 0 {
		t.Fatal(stderr)
	}
	part := filepath.Join(dir, "part")
	stops := 0
	for try := 0; ; try++ {
		more := []string{"--out", part}
		if _, err := os.Stat(filepath.Join(part, "config.yaml")); err == nil {
			more = append(more, "--resume")
		}
		if try == 30 {
			t.Fatal("the run does not end")
		}
		cmd := exec.Command(os.Args[0], append(slices.Clone(args), more...)...)
		cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if try < 4 { // give it time to make the folder, then stop it somewhere
			waitFor(filepath.Join(part, "metrics.jsonl"))
			time.Sleep(time.Duration(60+53*try) * time.Millisecond)
			stopSignal(cmd.Process, try)
		}
		err := cmd.Wait()
		if err == nil {
			break
		}
		if !cmd.ProcessState.Exited() { // on a busy machine the signal came before the program could hear it
			continue
		}
		if code := cmd.ProcessState.ExitCode(); code != command.ExitStopped {
			t.Fatalf("exit status %d\n%s", code, errs.String())
		}
		stops++
	}
	if stops == 0 {
		t.Error("the run was never stopped before its end")
	}
	if metricRows(t, filepath.Join(dir, "whole")) != metricRows(t, part) {
		t.Error("another run")
	}
}

// A process that is killed at arbitrary moments, mostly while it writes a checkpoint, and resumed
// until it is done has the bits of an uninterrupted run, and leaves no unreadable file on the way.
// FSPDA_LONG=1 kills it 50 times.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	kills, iterations := 4, 4000
	if os.Getenv("FSPDA_LONG") != "" {
		kills, iterations = 50, 60000
	}
	dir := t.TempDir()
	args := quick("--iterations", strconv.Itoa(iterations), "--eval-points", "20", "--checkpoint-every", "0.005",
		"--quiet")
	whole, part := filepath.Join(dir, "whole"), filepath.Join(dir, "part")
	if status, _, stderr := call(t, append(args, "--out", whole)...); status != 0 {
		t.Fatal(stderr)
	}
	s := rng.New(1, "kills")
	killed := 0
	for try := 0; ; try++ {
		more := []string{"--out", part}
		if _, err := os.Stat(filepath.Join(part, "config.yaml")); err == nil {
			more = append(more, "--resume")
		}
		cmd := exec.Command(os.Args[0], append(slices.Clone(args), more...)...)
		cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if killed < kills {
			// Half of the kills come at any time from the start on, half after a checkpoint has
			// begun.
			if try%2 == 1 {
				waitFor(filepath.Join(part, "checkpoints", ".writing"), filepath.Join(part, "summary.json"))
			}
			time.Sleep(time.Duration(s.Float64() * float64(150*time.Millisecond)))
			_ = cmd.Process.Kill()
		}
		err := cmd.Wait()
		if err == nil {
			break
		}
		if cmd.ProcessState.Exited() {
			t.Fatalf("try %d: exit status %d\n%s", try, cmd.ProcessState.ExitCode(), errs.String())
		}
		killed++
		if _, err := train.ReadBest(part); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("after kill %d: %v", killed, err)
		}
	}
	if killed == 0 {
		t.Error("the run was never killed before its end")
	}
	if metricRows(t, whole) != metricRows(t, part) {
		t.Error("another run")
	}
	vectors := filepath.Join("checkpoints", fmt.Sprintf("iter-%09d", iterations), "agents.safetensors")
	a, errA := os.ReadFile(filepath.Join(whole, vectors))
	b, errB := os.ReadFile(filepath.Join(part, vectors))
	if err := errors.Join(errA, errB); err != nil || !bytes.Equal(a, b) {
		t.Errorf("the last checkpoints differ, %v", err)
	}
	bestA, errA := train.ReadBest(whole)
	bestB, errB := train.ReadBest(part)
	if err := errors.Join(errA, errB); err != nil || bestA.Row.Iteration != bestB.Row.Iteration ||
		!slices.Equal(bestA.Mean, bestB.Mean) {
		t.Errorf("the best models differ, %v", err)
	}
	t.Logf("killed %d times", killed)
}

// waitFor waits up to ten seconds for one of several files.
func waitFor(paths ...string) {
	for range 5000 {
		for _, path := range paths {
			if _, err := os.Stat(path); err == nil {
				return
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// stopSignal sends SIGINT and SIGTERM in turn.
func stopSignal(p *os.Process, try int) {
	if try%2 == 0 {
		_ = p.Signal(os.Interrupt)
		return
	}
	_ = p.Signal(syscall.SIGTERM)
}

func TestBenchKernels(t *testing.T) {
	status, stdout, stderr := call(t, "bench", "kernels", "--filter", "256×10×100", "--each", "1ms", "--json")
	var r measure.KernelsReport
	if err := json.Unmarshal([]byte(stdout), &r); status != 0 || err != nil {
		t.Fatalf("exit status %d, %v\n%s", status, err, stderr)
	}
	if len(r.Rows) < 4 || r.Rows[0].Share <= 0 || r.PeakGFLOPs <= 0 {
		t.Errorf("%+v", r)
	}
	status, stdout, _ = call(t, "bench", "kernels", "--filter", "sgemm/256×10×100", "--each", "1ms")
	if status != 0 ||
		!strings.Contains(stdout, "256×10×100 NN") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
	if status, _, stderr := call(t, "bench", "kernels", "--filter", "gemmm"); status != command.ExitBadInput ||
		!strings.Contains(stderr, "elementwise") {
		t.Errorf("no such kernel: exit status %d, %s", status, stderr)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	var out, errs bytes.Buffer
	if status := Run(ctx, []string{"bench", "kernels"}, &out, &errs); status != command.ExitStopped || out.Len() > 0 {
		t.Errorf("interrupted: exit status %d\n%s%s", status, out.String(), errs.String())
	}
}

func TestBenchStep(t *testing.T) {
	status, stdout, stderr := call(t, "bench", "step", "--batch", "32", "--hidden", "10", "--data-train", "600",
		"--time", "50ms", "--json")
	if status != 0 {
		t.Fatal(stderr)
	}
	var r map[string]float64
	var raw map[string]any
	if err := json.Unmarshal([]byte(stdout), &raw); err != nil {
		t.Fatal(err)
	}
	r = map[string]float64{}
	for k, v := range raw {
		if f, ok := v.(float64); ok {
			r[k] = f
		}
	}
	// 2mnk for forward and weight gradient of both layers, and the data gradient of the second.
	if want := 2.0 * 32 * (2*784*10 + 3*10*10); r["flops"] != want {
		t.Errorf("flops %v, want %v", r["flops"], want)
	}
	if sum := r["gradient_ns"] + r["vectors_ns"] + r["batches_ns"] + r["rest_ns"]; r["batches_ns"] > 0 &&
		sum != r["step_ns"] {
		t.Errorf("the parts add up to %v of %v", sum, r["step_ns"])
	}
	if r["gemm_gflop_s"] <= 0 || r["fraction_of_gemm"] <= 0 {
		t.Errorf("%v", raw)
	}
	status, stdout, _ = call(t, "bench", "step", "--batch", "32", "--hidden", "10", "--data-train", "600", "--time",
		"20ms")
	if status != 0 || !strings.Contains(stdout, "times what its matrix products alone take") {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{nil, {"--help"}, {"train", "--help"}, {"bench"}, {"--version"}} {
		if status, stdout, _ := call(t, args...); status != 0 || stdout == "" {
			t.Errorf("%v: exit status %d", args, status)
		}
	}
}

// With --algo all there is a line for each algorithm.
func TestBenchStepOfAll(t *testing.T) {
	status, stdout, stderr := call(t, "bench", "step", "--algo", "all", "--batch", "8", "--hidden", "4", "--data-train",
		"100", "--time", "5ms", "--json")
	var table []measure.StepReport
	if err := json.Unmarshal([]byte(stdout), &table); status != 0 || err != nil {
		t.Fatalf("exit status %d, %v\n%s", status, err, stderr)
	}
	var names []string
	for _, r := range table {
		names = append(names, r.Algo)
	}
	if !slices.Equal(names, train.Algorithms()) {
		t.Errorf("measured %v", names)
	}
	if text := measure.StepTable(table).String(); strings.Count(text, "\n") != 2+len(names) {
		t.Errorf("the table as text:\n%s", text)
	}
}

// The packages that message knows are those of the module whose errors begin with their name.
func TestNamedPackages(t *testing.T) {
	clause := regexp.MustCompile(`(?m)^package (\w+)`)
	found := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (slices.Contains([]string{"testdata", "testing", "tools", "examples"}, e.Name()) ||
			len(e.Name()) > 2 && e.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if m := clause.FindSubmatch(text); m != nil && bytes.Contains(text, []byte(`"`+string(m[1])+`: `)) {
			found[string(m[1])] = true
		}
		return nil
	})
	if want := slices.Sorted(maps.Keys(found)); err != nil || !slices.Equal(namedPackages, want) {
		t.Errorf("namedPackages is %q,\nwant %q; %v", namedPackages, want, err)
	}
}

// An error message names one package, whatever it wraps.
func TestMessage(t *testing.T) {
	for in, want := range map[string]string{
		"config: data x: data: set x: decoder turbo: jpeg: not found": "config: data x: decoder turbo: not found",
		"config: data text: text: /x: data: cut off":                  "config: data text: /x: cut off",
		"config: data text: no text (text: byte 0)":                   "config: data text: no text (byte 0)",
		"train: gradient of agent 1: model: data: no file":            "train: gradient of agent 1: no file",
		"a plain error: with a colon":                                 "a plain error: with a colon",
	} {
		if got := message(errors.New(in)); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
