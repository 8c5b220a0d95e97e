//go:build linux

package cli

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/cli/traincmd"
	"fspda/internal/rng"
	"fspda/train"
	"fspda/train/process"
)

// faultPlan injects faults into a run of processes.
type faultPlan struct {
	t          *testing.T
	agents     int
	faultsFile string // JSON file that the agents read
	disk       string // folder of the agents' checkpoints, on a file system of its own; "" if it cannot be
	draw       rng.Stream

	mu   sync.Mutex
	pids map[int]int
	now  traincmd.NetworkFaults
	done map[string]int
}

// started records the process of an agent.
func (w *faultPlan) started(agent, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids[agent] = pid
}

// signal sends a signal to a random agent's process and returns that process; 0 if it was dead.
func (w *faultPlan) signal(sig syscall.Signal) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return send(w.pids[w.draw.IntN(w.agents)], sig)
}

// send sends a signal to a process and returns the process, or 0 if it is dead.
func send(pid int, sig syscall.Signal) int {
	if pid == 0 || syscall.Kill(pid, sig) != nil {
		return 0
	}
	return pid
}

// change edits the file of network faults.
func (w *faultPlan) change(edit func(f *traincmd.NetworkFaults)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(&w.now)
	text, err := json.Marshal(w.now)
	if err == nil {
		err = os.WriteFile(w.faultsFile, text, 0o600)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// moment returns a random duration of at most 50 ms more than so many milliseconds.
func (w *faultPlan) moment(most int) time.Duration {
	return time.Duration(50+w.draw.IntN(most)) * time.Millisecond
}

// restartServer kills agent 0 and with it the server at which the others found each other. It
// reports whether agent 0 was alive.
func (w *faultPlan) restartServer() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return send(w.pids[process.Coordinator], syscall.SIGKILL) != 0
}

// jump shifts the clock of a random agent's process by up to a day. It reports whether it did.
func (w *faultPlan) jump() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	pid, seconds := w.pids[w.draw.IntN(w.agents)], int32(w.draw.IntN(2*86400)-86400)
	return pid != 0 && jumpClock(pid, seconds) == nil
}

// event injects one fault and removes it if it is temporary. It returns "" if nothing could be
// done, as to a dead process.
func (w *faultPlan) event() string {
	name, happened := "", true
	switch w.draw.IntN(9) {
	case 0, 1:
		name, happened = "kill", w.signal(syscall.SIGKILL) != 0
	case 2:
		name, happened = "pause", w.pause()
	case 3:
		name = "partition"
		w.during(4000, func(f *traincmd.NetworkFaults) { f.Cut = w.halves() },
			func(f *traincmd.NetworkFaults) { f.Cut = nil })
	case 4:
		name = "broken connections"
		w.during(2000, func(f *traincmd.NetworkFaults) { f.Break = 0.02 },
			func(f *traincmd.NetworkFaults) { f.Break = 0 })
	case 5:
		name = "late"
		w.during(2000, func(f *traincmd.NetworkFaults) { f.Late = 0.3 }, func(f *traincmd.NetworkFaults) { f.Late = 0 })
	case 6:
		name, happened = "clock jump", w.jump()
	case 7:
		name, happened = "server restart", w.restartServer()
	case 8:
		name, happened = "full disk", w.fill()
	}
	if !happened {
		return ""
	}
	return name
}

// pause stops a process for a while.
func (w *faultPlan) pause() bool {
	pid := w.signal(syscall.SIGSTOP)
	if pid == 0 {
		return false
	}
	time.Sleep(w.moment(3000))
	return syscall.Kill(pid, syscall.SIGCONT) == nil
}

// during injects network faults for up to so many milliseconds.
func (w *faultPlan) during(most int, begin, end func(f *traincmd.NetworkFaults)) {
	w.change(begin)
	time.Sleep(w.moment(most))
	w.change(end)
}

// halves returns a random partition of the network: the pairs that receive nothing from each other.
func (w *faultPlan) halves() (cut [][2]int) {
	side := make([]bool, w.agents)
	for i := range side {
		side[i] = w.draw.IntN(2) == 0
		for j := range i {
			if side[i] != side[j] {
				cut = append(cut, [2]int{i, j})
			}
		}
	}
	return cut
}

// fill fills the disk of the checkpoints for a while.
func (w *faultPlan) fill() bool {
	if w.disk == "" {
		return false
	}
	name := filepath.Join(w.disk, "full")
	if f, err := os.Create(name); err == nil {
		block := make([]byte, 1<<20)
		for err == nil {
			_, err = f.Write(block)
		}
		f.Close()
	}
	time.Sleep(w.moment(3000))
	return os.Remove(name) == nil
}

// inject injects count faults, until stop is closed.
func (w *faultPlan) inject(count int, stop <-chan struct{}) {
	for n := 0; n < count; {
		select {
		case <-time.After(w.moment(500)):
		case <-stop:
			return
		}
		if what := w.event(); what != "" {
			n++
			w.mu.Lock()
			w.done[what]++
			w.mu.Unlock()
		}
	}
}

// total returns the number of injected faults.
func (w *faultPlan) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.done {
		n += k
	}
	return n
}

// smallDisk mounts a small file system there, and returns "" if that is not permitted.
func smallDisk(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("fspda-test", path, "tmpfs", 0, "size=256m"); err != nil {
		t.Logf("no disk will be full: a file system cannot be mounted: %v", err)
		return ""
	}
	t.Cleanup(func() { _ = syscall.Unmount(path, syscall.MNT_DETACH) })
	return path
}

// endOf returns the last row of a run.
func endOf(t *testing.T, dir string) train.Row {
	t.Helper()
	rows, err := train.ReadMetrics(filepath.Join(dir, "metrics.jsonl"), 1<<60)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[len(rows)-1]
}

// checkFiles verifies every file of every checkpoint, of the agents and of the run.
func checkFiles(t *testing.T, dir string) {
	t.Helper()
	checkManifests(t, filepath.Join(dir, "agents", "*"), map[string]string{"vectors_sha256": "agent.safetensors",
		"lines_sha256": "lines.bin"})
	checkManifests(t, dir, map[string]string{"vectors_sha256": "agents.safetensors"})
}

// checkManifests compares the files of checkpoints with the checksums in their manifests under
// these keys.
func checkManifests(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(dir, "checkpoints", "iter-*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no checkpoints in %s: %v", dir, err)
	}
	for _, name := range manifests {
		text, err := os.ReadFile(name)
		var m map[string]any
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for key, file := range files {
			b, err := os.ReadFile(filepath.Join(filepath.Dir(name), file))
			if sum := sha256.Sum256(b); err != nil || hex.EncodeToString(sum[:]) != m[key] {
				t.Errorf("%s of %s is damaged: %v", file, filepath.Dir(name), err)
			}
		}
	}
}

// faults makes a run of processes twice at the same time, with and without faults, and compares the
// results.
func faults(t *testing.T, agents, events int, seed uint64, args []string) {
	dir := t.TempDir()
	calm, rough := filepath.Join(dir, "calm"), filepath.Join(dir, "rough")
	args = append(args, "--async", "-n", strconv.Itoa(agents), "--checkpoint-every", "1", "--drop-after", "20",
		"--give-up", "0.5", "--restarts", "10000")
	w := &faultPlan{t: t, agents: agents, faultsFile: filepath.Join(dir, "faults.json"), draw: rng.New(seed, "trouble"),
		pids: map[int]int{}, done: map[string]int{}}
	w.disk = smallDisk(t, filepath.Join(rough, "agents"))
	stop, over, undisturbed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { defer close(over); w.inject(events, stop) }()
	go func() {
		_, err := tryProcesses(append(args[:len(args):len(args)], "--out", calm), func(int, int) {})
		undisturbed <- err
	}()
	_, err := tryProcesses(append(args[:len(args):len(args)], "--out", rough, "--inject-faults", w.faultsFile),
		w.started)
	close(stop)
	<-over
	if err := errors.Join(err, <-undisturbed); err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, events: %v", seed, w.done)
	if w.total() < events {
		t.Errorf("the run was over after %d events of %d", w.total(), events)
	}
	want, got := endOf(t, calm), endOf(t, rough)
	t.Logf("accuracy %.4f undisturbed, %.4f; of the worst agent %.4f and %.4f; sum of duals %.3g and %.3g; %.0f and "+
		"%.0f s", float64(want.TestAccAvg), float64(got.TestAccAvg), float64(want.TestAccMin), float64(got.TestAccMin),
		float64(want.DualSum), float64(got.DualSum), float64(want.WallS), float64(got.WallS))
	if got.TestAccAvg < want.TestAccAvg-0.01 {
		t.Errorf("accuracy %v, %v undisturbed", got.TestAccAvg, want.TestAccAvg)
	}
	if !(got.DualSum < 1e-3) {
		t.Errorf("the duals sum to %v", got.DualSum)
	}
	checkFiles(t, rough)
}

// Two hundred faults are injected into one run on real MNIST. FSPDA_FAULTS_SEED draws others.
func TestFaults(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: seven minutes long; set FSPDA_LONG=1")
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("FSPDA_FAULTS_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	faults(t, 6, 200, seed, []string{"--data", "mnist", "--data-dir", mnistFolder(t), "--iterations", "6000",
		"--eval-points", "6", "--metrics", "test", "--gradient-time", "0.06"})
}

// Twenty faults on drawn digits, a short version.
func TestFewFaults(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: a minute long; set FSPDA_LONG=1")
	}
	faults(t, 4, 20, 2, []string{"--data-train", "4000", "--data-test", "2000", "--hidden", "32", "--batch", "32",
		"--iterations", "1200", "--eval-points", "4", "--alpha", "0.1", "--metrics", "test", "--gradient-time", "0.04"})
}

// timeTo returns when a run first reached an accuracy in the column that of selects, in seconds
// since its first row; 0 if never.
func timeTo(t *testing.T, dir string, accuracy float64, of func(train.Row) train.Num) float64 {
	t.Helper()
	rows, err := train.ReadMetrics(filepath.Join(dir, "metrics.jsonl"), 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if float64(of(r)) >= accuracy {
			return float64(r.WallS) - float64(rows[0].WallS)
		}
	}
	return 0
}

// One agent of ten is six times slower: its gradient takes 0.3 s, that of the others 0.05 s. Both
// times are waits, so other work on the machine does not change them. The synchronous run waits for
// the slow agent, the asynchronous run does not, and its mean model reaches the same accuracy at
// least three times sooner. The log also compares the worst agents.
func TestAsyncIsSooner(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: two minutes long; set FSPDA_LONG=1")
	}
	dir := t.TempDir()
	args := []string{"--data", "mnist", "--data-dir", mnistFolder(t), "-n", "10", "--iterations", "300",
		"--eval-points", "30", "--metrics", "test", "--eval-test", "2000",
		"--slowness", "straggler(6)", "--gradient-time", "0.05", "--checkpoint-every", "0"}
	sync, async := filepath.Join(dir, "sync"), filepath.Join(dir, "async")
	processes(t, append(args[:len(args):len(args)], "--out", sync), func(int, int) {})
	processes(t, append(args[:len(args):len(args)], "--out", async, "--async"), func(int, int) {})
	mean := func(r train.Row) train.Num { return r.TestAccAvg }
	worst := func(r train.Row) train.Num { return r.TestAccMin }
	for _, accuracy := range []float64{0.7, 0.8, 0.85} {
		slow, soon := timeTo(t, sync, accuracy, mean), timeTo(t, async, accuracy, mean)
		t.Logf("accuracy %g of the mean model after %.1f s, asynchronous %.1f s: %.1f times sooner", accuracy, slow,
			soon, slow/soon)
		if accuracy > 0.75 && (soon == 0 || slow < 3*soon) { // earlier a second of a few decides
			t.Errorf("accuracy %g is not reached three times sooner", accuracy)
		}
		slow, soon = timeTo(t, sync, accuracy, worst), timeTo(t, async, accuracy, worst)
		t.Logf("accuracy %g of the worst agent after %.1f s, asynchronous %.1f s (0: never)", accuracy, slow, soon)
	}
}
