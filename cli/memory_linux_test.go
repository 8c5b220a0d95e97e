package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The most memory that a run takes, as the system counts it, is at most 1 % above the forecast,
// whose limit the Go runtime may exceed for a moment, and at most 3 % below for a language model,
// 5 % for a convolutional network, 10 % for an MLP, whatever the algorithm, the optimizer and the
// clock. Runs are so long that the garbage collector has run often.
func TestMemoryOfRuns(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: two minutes long; set FSPDA_LONG=1")
	}
	links := filepath.Join(t.TempDir(), "links.yaml")
	if err := os.WriteFile(links, []byte("gradient_ms: 5\ndefault: {latency_ms: 30, bandwidth_mbit: 50}\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "fspda")
	if out, err := exec.Command("go", "build", "-o", program, "../cmd/fspda").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	check := func(least float64, config string) {
		args := append([]string{"train", "--threads", "2", "--out", filepath.Join(t.TempDir(), "run")},
			strings.Fields(config)...)
		out, most := peak(t, program, args...)
		found := regexp.MustCompile(`(\d+) MB of memory`).FindSubmatch(out)
		if found == nil {
			t.Fatalf("no forecast in\n%s", out)
		}
		forecast, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.0f MB, forecast %.0f MB", config, most, forecast)
		if most > 1.01*forecast || most < least*forecast {
			t.Errorf("%s: %.0f MB, forecast %.0f MB", config, most, forecast)
		}
	}
	for _, extra := range []string{"--agents 4 --iterations 60", "--agents 4 --algo dsgd --iterations 100",
		"--agents 2 --iterations 60 --model llama-nano", "--agents 1 --algo sgd --iterations 300",
		"--agents 2 --iterations 100 --batch 4 --threads 1 --sample-tokens 64"} {
		check(0.97, "--data synthetic-text --model gpt-nano --warmup-iterations 5 --eval-points 10 "+
			"--metrics test --eval-test 100 --checkpoint-every 0.5 "+extra)
	}
	for _, extra := range []string{"--agents 2", "--agents 8 --batch 16"} {
		check(0.95, "--data synthetic-images --model resnet20 --crop 32 --data-train 1000 --data-test 200 "+
			"--partition shuffled --alpha 0.05 --iterations 12 --eval-points 2 "+extra)
	}
	for _, extra := range []string{"--agents 10", "--agents 128 --graph torus --eval-agents 4",
		"--algo dsgd --optimizer adamw --alpha 0.001", "--algo dsgd --optimizer heavy-ball --alpha 0.01",
		"--algo fspda-storm", "--algo choco", "--links " + links, "--algo fspda-async"} {
		check(0.9, "--iterations 60 --eval-points 2 "+extra)
	}
}

// peak runs a program, and returns its output and the most memory that it took, in MB. Linux counts
// at least the memory that the process which starts a program has, so that one that has little does.
func peak(t *testing.T, program string, args ...string) (out []byte, most float64) {
	t.Helper()
	result := filepath.Join(t.TempDir(), "peak")
	cmd := exec.Command(os.Args[0], append([]string{program}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "GOGC=") || strings.HasPrefix(s, "GOMEMLIMIT=")
	}), "FSPDA_TEST_PEAK="+result)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	kB, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		t.Fatal(err)
	}
	return out, kB * 1024 / 1e6
}

// init makes a process that peak has started run its arguments, and write the most memory that they
// took to a file, in kB.
func init() {
	result := os.Getenv("FSPDA_TEST_PEAK")
	if result == "" {
		return
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		panic(err)
	}
	most := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if err := os.WriteFile(result, strconv.AppendInt(nil, most, 10), 0o644); err != nil {
		panic(err)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// More processes than memory has room for are not started.
func TestUpRefusesTooManyProcesses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	status, _, stderr := call(t, "up", "--agents", "100000000", "--graph", "ring", "--out", out)
	if status != 2 || !strings.Contains(stderr, "agents 100000000") || !strings.Contains(stderr, "fspda train") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Errorf("%s was made", out)
	}
}
