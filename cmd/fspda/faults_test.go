//go:build linux

package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/internal/rng"
	"fspda/train"
)

// trouble does to a run of processes what the world does.
type trouble struct {
	t       *testing.T
	agents  int
	weather string // file
	homes   string // folder of the agents' checkpoints, a disk of its own; "": it could not be made one
	draw    rng.Stream

	mu   sync.Mutex
	pids map[int]int
	now  forecast
	done map[string]int
}

// started notes the process of an agent.
func (w *trouble) started(agent, pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids[agent] = pid
}

// signal sends one to a random agent's process and returns that process.
func (w *trouble) signal(sig syscall.Signal) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	pid := w.pids[w.draw.IntN(w.agents)]
	if pid != 0 {
		_ = syscall.Kill(pid, sig) // it may just be dead
	}
	return pid
}

// change changes the weather.
func (w *trouble) change(edit func(f *forecast)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	edit(&w.now)
	text, err := json.Marshal(w.now)
	if err == nil {
		err = os.WriteFile(w.weather, text, 0o600)
	}
	if err != nil {
		w.t.Error(err)
	}
}

// moment is a random time up to so many milliseconds.
func (w *trouble) moment(most int) time.Duration {
	return time.Duration(50+w.draw.IntN(most)) * time.Millisecond
}

// restartServer kills agent 0, and with it the server that the others found each other by.
func (w *trouble) restartServer() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pid := w.pids[train.Collector]; pid != 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// jump sets the clock of a random agent's process up to a day before or behind the machine's.
func (w *trouble) jump() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	pid, seconds := w.pids[w.draw.IntN(w.agents)], int32(w.draw.IntN(2*86400)-86400)
	if pid == 0 {
		return "clock jump of nobody"
	}
	if err := jumpClock(pid, seconds); err != nil {
		return "clock jump that failed" // its process may just be dead
	}
	return "clock jump"
}

// event lets one thing happen, and undoes it where it does not last.
func (w *trouble) event() string {
	switch w.draw.IntN(9) {
	case 0, 1:
		w.signal(syscall.SIGKILL)
		return "kill"
	case 6:
		return w.jump()
	case 7:
		w.restartServer()
		return "server restart"
	case 2:
		if pid := w.signal(syscall.SIGSTOP); pid != 0 {
			time.Sleep(w.moment(3000))
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		return "pause"
	case 3:
		side := make([]bool, w.agents)
		for i := range side {
			side[i] = w.draw.IntN(2) == 0
		}
		w.change(func(f *forecast) {
			for i := range side {
				for j := range i {
					if side[i] != side[j] {
						f.Cut = append(f.Cut, [2]int{i, j})
					}
				}
			}
		})
		time.Sleep(w.moment(4000))
		w.change(func(f *forecast) { f.Cut = nil })
		return "partition"
	case 4:
		w.change(func(f *forecast) { f.Lose = 0.3 })
		time.Sleep(w.moment(2000))
		w.change(func(f *forecast) { f.Lose = 0 })
		return "loss"
	case 5:
		w.change(func(f *forecast) { f.Double, f.Late = 0.3, 0.3 })
		time.Sleep(w.moment(2000))
		w.change(func(f *forecast) { f.Double, f.Late = 0, 0 })
		return "doubled and late"
	}
	return w.fill()
}

// fill takes all room of the disk that the checkpoints are on, for a while.
func (w *trouble) fill() string {
	if w.homes == "" {
		return "no disk to fill"
	}
	name := filepath.Join(w.homes, "full")
	if f, err := os.Create(name); err == nil {
		block := make([]byte, 1<<20)
		for err == nil {
			_, err = f.Write(block)
		}
		f.Close()
	}
	time.Sleep(w.moment(3000))
	os.Remove(name)
	return "full disk"
}

// play lets count events happen, until stop is closed.
func (w *trouble) play(count int, stop <-chan struct{}) {
	for range count {
		select {
		case <-time.After(w.moment(500)):
		case <-stop:
			return
		}
		what := w.event()
		w.mu.Lock()
		w.done[what]++
		w.mu.Unlock()
	}
}

// total is how many events there were.
func (w *trouble) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.done {
		n += k
	}
	return n
}

// smallDisk mounts a small file system there, and returns "" where that is not permitted.
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

// endOf is the last row of a run.
func endOf(t *testing.T, dir string) train.Row {
	t.Helper()
	rows, err := train.ReadMetrics(filepath.Join(dir, "metrics.jsonl"), 1<<60)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows[len(rows)-1]
}

// checkHomes verifies every file of every agent's checkpoints.
func checkHomes(t *testing.T, dir string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(dir, "agents", "*", "checkpoints", "iter-*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no checkpoints: %v", err)
	}
	sum := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		s := sha256.Sum256(b)
		return hex.EncodeToString(s[:])
	}
	for _, name := range manifests {
		text, err := os.ReadFile(name)
		var m struct {
			Vectors string `json:"vectors_sha256"`
			Lines   string `json:"lines_sha256"`
		}
		if err == nil {
			err = json.Unmarshal(text, &m)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		at := filepath.Dir(name)
		if sum(filepath.Join(at, "agent.safetensors")) != m.Vectors || sum(filepath.Join(at, "lines.bin")) != m.Lines {
			t.Errorf("%s is damaged", at)
		}
	}
}

// faults plays a run of processes with and without events and compares how they end. args say what it is, but for how slow it is.
func faults(t *testing.T, agents, events int, seed uint64, args, slow []string) {
	dir := t.TempDir()
	calm, rough := filepath.Join(dir, "calm"), filepath.Join(dir, "rough")
	args = append(args, "--async", "-n", strconv.Itoa(agents), "--checkpoint-every", "1", "--drop-after", "20", "--give-up", "0.5", "--restarts", "10000")
	processes(t, append(args[:len(args):len(args)], "--out", calm), func(int, int) {})
	w := &trouble{t: t, agents: agents, weather: filepath.Join(dir, "weather.json"), draw: rng.New(seed, "trouble"), pids: map[int]int{}, done: map[string]int{}}
	w.homes = smallDisk(t, filepath.Join(rough, "agents"))
	stop, over := make(chan struct{}), make(chan struct{})
	go func() { defer close(over); w.play(events, stop) }()
	processes(t, append(append(args, slow...), "--out", rough, "--weather", w.weather), w.started)
	close(stop)
	<-over
	t.Logf("events: %v", w.done)
	if w.total() < events {
		t.Errorf("the run was over after %d events of %d", w.total(), events)
	}
	want, got := endOf(t, calm), endOf(t, rough)
	t.Logf("accuracy %.4f undisturbed, %.4f; sum of duals %.3g and %.3g", float64(want.TestAccAvg), float64(got.TestAccAvg), float64(want.DualSum), float64(got.DualSum))
	if got.TestAccAvg < want.TestAccAvg-0.01 {
		t.Errorf("accuracy %v, %v undisturbed", got.TestAccAvg, want.TestAccAvg)
	}
	if !(got.DualSum < 1e-3) {
		t.Errorf("the duals sum to %v", got.DualSum)
	}
	checkHomes(t, rough)
}

// Two hundred things go wrong during one run on real MNIST. FSPDA_FAULTS_SEED draws others.
func TestFaults(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: ten minutes long; set FSPDA_LONG=1")
	}
	seed, err := strconv.ParseUint(cmp.Or(os.Getenv("FSPDA_FAULTS_SEED"), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	faults(t, 6, 200, seed, []string{"--data", "mnist", "--data-dir", mnistFolder(t), "--iterations", "9000", "--eval-points", "6", "--metrics", "test"}, []string{"--gradient-time", "0.1"})
}

// Twenty on drawn digits, to try them out.
func TestFewFaults(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: a minute long; set FSPDA_LONG=1")
	}
	faults(t, 4, 20, 2, []string{"--data-train", "4000", "--data-test", "2000", "--hidden", "32", "--batch", "32", "--iterations", "1200", "--eval-points", "4", "--alpha", "0.1", "--metrics", "test"}, []string{"--gradient-time", "0.05"})
}

// soonest is when a run's mean model first was as accurate as that, in seconds; 0: never.
func soonest(t *testing.T, dir string, accuracy float64) float64 {
	t.Helper()
	rows, err := train.ReadMetrics(filepath.Join(dir, "metrics.jsonl"), 1<<60)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if float64(r.TestAccAvg) >= accuracy {
			return float64(r.WallS) - float64(rows[0].WallS)
		}
	}
	return 0
}

// One agent of ten is six times slower. The synchronous run waits for it, the asynchronous one does not and is there at least three times sooner.
func TestAsyncIsSooner(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: two minutes long; set FSPDA_LONG=1")
	}
	dir := t.TempDir()
	args := []string{"--data", "mnist", "--data-dir", mnistFolder(t), "-n", "10", "--iterations", "300", "--eval-points", "30", "--metrics", "test", "--eval-test", "2000", "--eval-agents", "1",
		"--slowness", "straggler(6)", "--gradient-time", "0.05", "--checkpoint-every", "0"}
	for _, mode := range []string{"sync", "async"} {
		extra := []string{"--out", filepath.Join(dir, mode)}
		if mode == "async" {
			extra = append(extra, "--async")
		}
		processes(t, append(args[:len(args):len(args)], extra...), func(int, int) {})
	}
	for _, accuracy := range []float64{0.6, 0.7, 0.8} {
		sync, async := soonest(t, filepath.Join(dir, "sync"), accuracy), soonest(t, filepath.Join(dir, "async"), accuracy)
		said := fmt.Sprintf("accuracy %g after %.1f s, asynchronous %.1f s: %.1f times sooner", accuracy, sync, async, sync/async)
		t.Log(said)
		if async == 0 || sync < 3*async {
			t.Error(said)
		}
	}
}
