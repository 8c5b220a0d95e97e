//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/internal/testing/disttest"
)

// elasticRun is a run of processes whose members change.
type elasticRun struct {
	t      *testing.T
	dir    string
	agents int
	args   []string
	peers  string
	join   string // Addresses to join, in place of peers; empty: none.

	mu    sync.Mutex
	cmds  []*exec.Cmd
	said  []*bytes.Buffer
	alive sync.WaitGroup
}

func newElasticRun(t *testing.T, agents int, more ...string) *elasticRun {
	return joinElasticRun(t, agents, "", more...)
}

// joinElasticRun starts a run whose agents join others at some addresses; with none, by a file of
// addresses.
func joinElasticRun(t *testing.T, agents int, join string, more ...string) *elasticRun {
	e := &elasticRun{t: t, dir: t.TempDir(), agents: agents, join: join, cmds: make([]*exec.Cmd, agents),
		said: make([]*bytes.Buffer, agents), peers: localPeers(t, agents)}
	e.args = append([]string{"--data-train", "400", "--data-test", "100", "--hidden", "6", "--batch", "16",
		"--agents", strconv.Itoa(agents), "--gradient-time", "0.01"}, more...)
	for i := range agents {
		e.said[i] = &bytes.Buffer{}
		e.start(i)
	}
	t.Cleanup(func() {
		for i := range agents {
			e.kill(i)
		}
		e.alive.Wait()
		if t.Failed() {
			for i, said := range e.said {
				t.Logf("agent %d said:\n%s", i, said)
			}
		}
	})
	return e
}

func (e *elasticRun) out() string { return filepath.Join(e.dir, "out") }

// start starts the process of an agent.
func (e *elasticRun) start(i int) {
	e.t.Helper()
	how, where := "--peers", e.peers
	if e.join != "" {
		how, where = "--join", e.join
	}
	cmd := exec.Command(os.Args[0], append([]string{"agent", "--rank", strconv.Itoa(i), how, where,
		"--insecure", "--membership", "elastic", "--drop-after", "1", "--checkpoint-every", "1",
		"--out", e.out()}, e.args...)...)
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	from, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.cmds[i] = cmd
	e.alive.Go(func() {
		for lines := bufio.NewScanner(from); lines.Scan(); {
			e.mu.Lock()
			e.said[i].WriteString(lines.Text() + "\n")
			e.mu.Unlock()
		}
		_ = cmd.Wait() // await and end look at the result
	})
}

// kill ends a process at once.
func (e *elasticRun) kill(i int) { _ = e.cmds[i].Process.Kill() }

// await waits until the output of an agent has a text a number of times.
func (e *elasticRun) await(i int, text string, times int) {
	e.t.Helper()
	for begin := time.Now(); time.Since(begin) < 3*time.Minute; time.Sleep(20 * time.Millisecond) {
		e.mu.Lock()
		n := strings.Count(e.said[i].String(), text)
		e.mu.Unlock()
		if n >= times {
			return
		}
	}
	e.t.Fatalf("agent %d has not said %q %d times", i, text, times)
}

// end waits until the processes have ended. It repeats the run in one process, by the log of the
// members, and compares the models. It returns how many members each row has.
func (e *elasticRun) end() (present []string) {
	e.t.Helper()
	done := make(chan struct{})
	go func() {
		e.alive.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		e.t.Fatal("the run has not ended within five minutes")
	}
	log, again := filepath.Join(e.out(), "members.jsonl"), filepath.Join(e.dir, "again")
	replay := slices.DeleteFunc(slices.Clone(e.args), func(a string) bool {
		return a == "--gradient-time" || a == "0.01"
	})
	replay = append([]string{"train", "--quiet", "--membership", log, "--out", again}, replay...)
	if status, _, stderr := call(e.t, replay...); status != 0 {
		e.t.Fatal(stderr)
	}
	if vectors(e.t, e.out()) != vectors(e.t, again) {
		text, _ := os.ReadFile(log)
		e.t.Errorf("the run by its log has other models:\n%s", text)
	}
	for line := range strings.Lines(metricRows(e.t, e.out())) {
		_, after, found := strings.Cut(line, `"agents_present":`)
		if !found {
			e.t.Fatalf("a row without the number of members: %s", line)
		}
		present = append(present, after[:1])
	}
	return present
}

// members is what each process says of a change.
const members = "the members change"

// Processes go on without an agent that was killed, let a new one into its slot, and agree on a log
// by which one process repeats the run to the bit.
func TestElasticProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	e := newElasticRun(t, 3, "--algo", "dsgd", "--graph", "ring", "--iterations", "900",
		"--eval-points", "9")
	e.await(0, " 100 of 900", 1)
	e.kill(2)
	e.await(0, members, 1)
	if err := os.RemoveAll(filepath.Join(e.out(), "agents", "002")); err != nil {
		t.Fatal(err)
	}
	e.await(0, " 200 of 900", 1)
	e.start(2)
	e.await(0, members, 2)
	present := e.end()
	if at := slices.Index(present, "2"); at < 0 || present[0] != "3" || present[len(present)-1] != "3" {
		t.Errorf("agents present in the rows: %v, want 3, then 2, then 3", present)
	}
}

// Agents join any of two members. When one of these is gone for good, a new agent joins by the other.
func TestElasticJoin(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute; set FSPDA_LONG=1")
	}
	join := fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", disttest.UnusedPort(t), disttest.UnusedPort(t))
	e := joinElasticRun(t, 4, join, "--algo", "local-sgd", "--iterations", "2000", "--eval-points", "20")
	e.await(0, " 100 of 2,000", 1)
	e.kill(0)
	e.await(1, members, 1)
	e.await(1, " 400 of 2,000", 1)
	e.kill(3)
	e.await(1, members, 2)
	if err := os.RemoveAll(filepath.Join(e.out(), "agents", "003")); err != nil {
		t.Fatal(err)
	}
	e.start(3)
	e.await(1, members, 3)
	if present := e.end(); present[0] != "4" || present[len(present)-1] != "3" {
		t.Errorf("agents present in the rows: %v, want 4 at first and 3 at the end", present)
	}
}

// A method of each family goes on without agent 0, whose role another process takes over.
func TestElasticFamilies(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes; set FSPDA_LONG=1")
	}
	for _, algo := range []string{"dsgd", "fspda-sa", "fspda-storm", "dsgt", "extra", "choco", "beer", "sgp", "sgd",
		"local-sgd", "diloco", "sparseloco", "demo", "sparta"} {
		t.Run(algo, func(t *testing.T) {
			graph := "ring"
			if algo == "sgp" || algo == "beer" || algo == "choco" {
				graph = "complete"
			}
			args := []string{"--algo", algo, "--iterations", "3000", "--eval-points", "15"}
			if !slices.Contains([]string{"sgd", "local-sgd", "diloco", "sparseloco", "demo", "sparta"}, algo) {
				args = append(args, "--graph", graph) // the others exchange with all
			}
			e := newElasticRun(t, 5, args...)
			e.await(0, " 200 of 3,000", 1)
			e.kill(0)
			e.await(1, members, 1)
			e.await(1, "2,000 of 3,000", 1)
			e.kill(3)
			e.await(1, members, 2)
			if present := e.end(); present[len(present)-1] != "3" {
				t.Errorf("agents present in the rows: %v, want 3 at the end", present)
			}
		})
	}
}

// fspda up goes on without an agent that is not started again, agent 0.
func TestUpElastic(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes half a minute; set FSPDA_LONG=1")
	}
	dir := t.TempDir()
	args := []string{"--data-train", "400", "--data-test", "100", "--hidden", "6", "--batch", "16", "--agents", "4",
		"--algo", "fspda-sa", "--graph", "ring", "--iterations", "1500"}
	one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
	cmd, said, err := startUp(nil, append([]string{"--membership", "elastic", "--drop-after", "1", "--restarts", "0",
		"--gradient-time", "0.01", "--out", many}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	pid, text := 0, ""
	for lines := bufio.NewScanner(said); lines.Scan(); {
		text += lines.Text() + "\n"
		if _, after, found := strings.Cut(lines.Text(), "started: agent 0, pid "); found {
			pid, _ = strconv.Atoi(after)
		}
		if pid > 0 && strings.Contains(lines.Text(), "[0]") && strings.Contains(lines.Text(), " of 1,500") &&
			!strings.Contains(lines.Text(), "evaluation     0") {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may be dead already
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	log := filepath.Join(many, "members.jsonl")
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--membership", log, "--out", one}, args...)...,
	); status != 0 {
		t.Fatal(stderr)
	}
	if vectors(t, one) != vectors(t, many) {
		t.Errorf("the run by its log has other models; the processes said:\n%s", text)
	}
}
