//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
	"fspda/train"
	"fspda/train/membership"
	"fspda/train/safetensors"
)

// elasticRun is a run of processes whose members change.
type elasticRun struct {
	t      *testing.T
	dir    string
	agents int
	args   []string                 // Of the run.
	own    []string                 // Of its processes alone.
	found  func(agent int) []string // How the process of an agent finds the others.

	mu     sync.Mutex
	cmds   []*exec.Cmd
	said   []*bytes.Buffer
	status []int // The exit status of the latest process of each agent; -1: it runs, or was killed.
	alive  sync.WaitGroup
}

// newElasticRun prepares a run. Its processes have this configuration unless the caller changes it.
func newElasticRun(t *testing.T, agents int, more ...string) *elasticRun {
	e := &elasticRun{t: t, dir: t.TempDir(), agents: agents, cmds: make([]*exec.Cmd, agents),
		said: make([]*bytes.Buffer, agents), status: make([]int, agents)}
	peers := localPeers(t, agents)
	e.found = func(int) []string { return []string{"--peers", peers} }
	e.args = append([]string{"--data-train", "400", "--data-test", "100", "--batch", "16", "--agents",
		strconv.Itoa(agents)}, more...)
	e.own = elastic("1", "--gradient-time", "0.01", "--checkpoint-every", "1")
	for i := range agents {
		e.said[i] = &bytes.Buffer{}
	}
	return e
}

// elastic returns arguments of a process whose run goes on without those who are silent for a time.
func elastic(dropAfter string, more ...string) []string {
	return append([]string{"--membership", "elastic", "--drop-after", dropAfter}, more...)
}

// startAll starts the processes of all agents.
func (e *elasticRun) startAll() {
	for i := range e.agents {
		e.start(i)
	}
	e.t.Cleanup(func() {
		for i := range e.agents {
			e.kill(i)
		}
		e.alive.Wait()
		if e.t.Failed() {
			for i, said := range e.said {
				e.t.Logf("agent %d said:\n%s", i, said)
			}
		}
	})
}

func (e *elasticRun) out() string { return filepath.Join(e.dir, "out") }

// start starts the process of an agent.
func (e *elasticRun) start(i int) {
	e.t.Helper()
	cmd := exec.Command(os.Args[0], slices.Concat([]string{"agent", "--rank", strconv.Itoa(i), "--insecure",
		"--metrics-listen", "127.0.0.1:0", "--out", e.out()}, e.found(i), e.own, e.args)...)
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1", fmt.Sprint("FSPDA_TEST_AGENT=", i))
	from, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.mu.Lock()
	e.cmds[i], e.status[i] = cmd, -1
	e.mu.Unlock()
	e.alive.Go(func() {
		for lines := bufio.NewScanner(from); lines.Scan(); {
			e.mu.Lock()
			e.said[i].WriteString(lines.Text() + "\n")
			e.mu.Unlock()
		}
		_ = cmd.Wait() // The status says it.
		e.mu.Lock()
		defer e.mu.Unlock()
		e.status[i] = cmd.ProcessState.ExitCode()
	})
}

// kill ends a process at once.
func (e *elasticRun) kill(i int) { _ = e.cmds[i].Process.Kill() }

// count returns how often an agent has said a text.
func (e *elasticRun) count(i int, text string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Count(e.said[i].String(), text)
}

// await waits until an agent has said a text a number of times.
func (e *elasticRun) await(i int, text string, times int) {
	e.t.Helper()
	e.poll(fmt.Sprintf("agent %d says %q %d times", i, text, times), func() bool { return e.count(i, text) >= times })
}

// ended returns the exit status of the process of an agent; -1: it runs, or was killed.
func (e *elasticRun) ended(i int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status[i]
}

// iterationLine is the line of a page of metrics that tells the iteration.
var iterationLine = regexp.MustCompile(`(?m)^fspda_iteration\{.*\} (\S+)$`)

// metricsLine is the line by which a process says where it serves its numbers.
var metricsLine = regexp.MustCompile(`info metrics: .*url (http://[^,\s]+)/metrics`)

// page returns the answer of an agent's process to a request for a path, empty if it serves no pages.
func (e *elasticRun) page(i int, path string) string {
	e.mu.Lock()
	all := metricsLine.FindAllStringSubmatch(e.said[i].String(), -1)
	e.mu.Unlock()
	if all == nil {
		return ""
	}
	client := http.Client{Timeout: 5 * time.Second}
	r, err := client.Get(all[len(all)-1][1] + path)
	if err != nil {
		return ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return string(text)
}

// iteration returns the iteration of an agent; -1: its process does not say it.
func (e *elasticRun) iteration(i int) int {
	m := iterationLine.FindStringSubmatch(e.page(i, "/metrics"))
	if m == nil {
		return -1
	}
	t, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		e.t.Fatal(err)
	}
	return int(t)
}

// awaitIteration waits until an agent is at iteration t.
func (e *elasticRun) awaitIteration(i, t int) {
	e.t.Helper()
	e.poll(fmt.Sprintf("agent %d at iteration %d", i, t), func() bool { return e.iteration(i) >= t })
}

// poll waits for a condition.
func (e *elasticRun) poll(what string, holds func() bool) {
	e.t.Helper()
	for begin := time.Now(); time.Since(begin) < 5*time.Minute; time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	e.t.Fatalf("not within five minutes: %s", what)
}

// present lists the members, as one of the processes sees them that hears a majority.
func (e *elasticRun) present() (all []int) {
	status, out, _ := call(e.t, "agents", e.out(), "--json")
	var s struct {
		Leader int `json:"leader"`
		Agents []struct {
			Slot   int  `json:"slot"`
			Member bool `json:"member"`
		} `json:"agents"`
	}
	if status != 0 || json.Unmarshal([]byte(out), &s) != nil || s.Leader < 0 {
		return nil
	}
	for _, a := range s.Agents {
		if a.Member {
			all = append(all, a.Slot)
		}
	}
	return all
}

// others lists the agents but one.
func (e *elasticRun) others(but int) (all []int) {
	for i := range e.agents {
		if i != but {
			all = append(all, i)
		}
	}
	return all
}

// advance waits until agents have said a number of times that the members change, and are at later
// iterations than then.
func (e *elasticRun) advance(agents []int, times int) {
	e.t.Helper()
	for _, i := range agents {
		e.await(i, members, times)
	}
	for _, i := range agents {
		e.awaitIteration(i, e.iteration(i)+5)
	}
}

// alone makes the run in one process, with changes of the members in a file, and returns its folder.
func (e *elasticRun) alone(name, log string, more ...string) string {
	e.t.Helper()
	dir := filepath.Join(e.dir, name)
	mustCall(e.t, slices.Concat([]string{"train", "--quiet", "--membership", log, "--out", dir}, e.args, more)...)
	return dir
}

// log writes changes of the members to a file.
func (e *elasticRun) log(name string, changes ...membership.Epoch) string {
	path := filepath.Join(e.dir, name)
	if err := os.WriteFile(path, membership.Text(changes), 0o644); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// changes returns the changes on which the processes have agreed.
func (e *elasticRun) changes() []membership.Epoch {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(e.out(), "members.jsonl"))
	if err != nil {
		e.t.Fatal(err)
	}
	log, err := membership.Parse(text, e.agents)
	if err != nil {
		e.t.Fatal(err)
	}
	return log.Epochs()
}

// rows returns the rows in a run folder.
func (e *elasticRun) rows(dir string) (all []train.Row) {
	e.t.Helper()
	all, err := train.ReadMetrics(filepath.Join(dir, "metrics.jsonl"), math.MaxInt)
	if err != nil {
		e.t.Fatal(err)
	}
	return all
}

// end waits until the processes have ended. Processes of agents that were not killed must end with
// status 0. It repeats the run in one process, by the log of the members, and compares the models. It
// returns the rows.
func (e *elasticRun) end(killed ...int) []train.Row {
	e.t.Helper()
	done := make(chan struct{})
	go func() {
		e.alive.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Minute):
		e.t.Fatal("the run has not ended within ten minutes")
	}
	for i, status := range e.status {
		if status != 0 && !slices.Contains(killed, i) {
			e.t.Errorf("the process of agent %d ended with status %d", i, status)
		}
	}
	log := filepath.Join(e.out(), "members.jsonl")
	if vectors(e.t, e.out()) != vectors(e.t, e.alone("again", log)) {
		text, _ := os.ReadFile(log)
		e.t.Errorf("the run by its log has other models:\n%s", text)
	}
	return e.rows(e.out())
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
	e := newElasticRun(t, 3, "--hidden", "6", "--algo", "dsgd", "--graph", "ring", "--iterations", "900",
		"--eval-points", "9")
	e.startAll()
	e.await(0, " 100 of 900", 1)
	e.kill(2)
	e.await(0, members, 1)
	if err := os.RemoveAll(filepath.Join(e.out(), "agents", "002")); err != nil {
		t.Fatal(err)
	}
	e.await(0, " 200 of 900", 1)
	e.start(2)
	e.await(0, members, 2)
	rows := e.end()
	less := slices.ContainsFunc(rows, func(r train.Row) bool { return r.AgentsPresent == 2 })
	if !less || rows[0].AgentsPresent != 3 || rows[len(rows)-1].AgentsPresent != 3 {
		t.Errorf("rows %v: want 3 agents present, then 2, then 3", rows)
	}
}

// Agents join any of two members. When one of these is gone for good, a new agent joins by the other.
func TestElasticJoin(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute; set FSPDA_LONG=1")
	}
	join := fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", disttest.UnusedPort(t), disttest.UnusedPort(t))
	e := newElasticRun(t, 4, "--hidden", "6", "--algo", "local-sgd", "--iterations", "2000", "--eval-points", "20")
	e.found = func(int) []string { return []string{"--join", join} }
	e.startAll()
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
	if rows := e.end(0); rows[0].AgentsPresent != 4 || rows[len(rows)-1].AgentsPresent != 3 {
		t.Errorf("rows %v: want 4 agents present at first and 3 at the end", rows)
	}
}

// elasticFamilies has a method of each family of those that are elastic between processes.
var elasticFamilies = []string{"dsgd", "fspda-sa", "fspda-storm", "dsgt", "extra", "led", "choco", "beer", "sgp",
	"sgd", "local-sgd", "diloco", "sparseloco", "demo", "sparta"}

// ofAll has the elastic methods in which every agent exchanges with every other one.
var ofAll = []string{"sgd", "local-sgd", "diloco", "sparseloco", "demo", "sparta"}

// ofRounds has the elastic methods that exchange after several local steps.
var ofRounds = []string{"led", "local-sgd", "diloco", "sparseloco"}

// familyRun prepares a run of eight agents, with an accuracy that changes little at its end.
func familyRun(t *testing.T, algo string) *elasticRun {
	args := []string{"--data-train", "2000", "--data-test", "2000", "--hidden", "16", "--algo", algo, "--alpha", "0.1",
		"--partition", "dirichlet-equal(1)", "--iterations", strconv.Itoa(familyIterations), "--eval-points", "30"}
	if !slices.Contains(append([]string{"sgp", "beer", "choco"}, ofAll...), algo) { // Others have no ring.
		args = append(args, "--graph", "ring")
	}
	if slices.Contains(ofRounds, algo) { // Else it depends on the number of iterations.
		args = append(args, "--local-steps", "10")
	}
	return newElasticRun(t, 8, args...)
}

const familyIterations = 3000

// Eight agents of a method of each family. One is killed for good at iteration 1,000: the others go
// on and are as accurate at the end as a run of seven from the state at that iteration.
func TestElasticFamilies(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes; set FSPDA_LONG=1")
	}
	for _, algo := range elasticFamilies {
		t.Run(algo, func(t *testing.T) {
			t.Parallel() // it mostly waits
			e := familyRun(t, algo)
			e.own = elastic("15", "--gradient-time", "0.01")
			e.startAll()
			e.awaitIteration(0, 1000)
			begin := time.Now()
			e.kill(3)
			e.advance(e.others(3), 1)
			took := time.Since(begin)
			got := lastRows(e.end(3))
			changes := e.changes()
			if len(changes) != 1 || !slices.Equal(changes[0].Left, []int{3}) {
				t.Fatalf("changes %v", changes)
			}
			// The seven leave the one behind in the iteration in which the first of them missed it.
			at := changes[0].At
			for _, idle := range changes[0].Idle {
				if !slices.Contains(ofAll, algo) { // There all miss it in the same exchange.
					at = min(at, idle.T)
				}
			}
			if slices.Contains(ofRounds, algo) {
				at -= at % 10
			}
			same := lastRows(e.rows(e.alone("same", e.log("same.jsonl",
				membership.Epoch{Epoch: 1, At: at, Left: []int{3}}))))
			// Seven begin anew with the mean model of that iteration, or of an earlier one with evaluations at
			// the same distance.
			from := at - at%100
			mean := filepath.Join(e.dir, "mean.safetensors")
			eight := e.alone("eight", e.log("nobody.jsonl"), "--iterations", strconv.Itoa(from), "--eval-points", "1")
			mustCall(t, "export", eight, "--out", mean)
			anew := lastRows(e.rows(e.alone("anew", e.log("seven.jsonl", membership.Epoch{Epoch: 1, Left: []int{3}}),
				"--init", mean, "--iterations", strconv.Itoa(familyIterations-from), "--eval-points",
				strconv.Itoa((familyIterations-from)/100))))
			t.Logf("all seven went on %.1f s after the kill, from iteration %d on; accuracy %.4f, of a run of "+
				"seven that are not late %.4f, of one from the mean model %.4f",
				took.Seconds(), changes[0].At, got, same, anew)
			if got < same-0.005 || got < anew-0.02 { // The one anew draws other batches.
				t.Errorf("an accuracy of %.4f; a run of seven from iteration %d has %.4f, from the mean model %.4f",
					got, at, same, anew)
			}
		})
	}
}

// lastRows returns the accuracy of the mean model, as a mean of the last five rows, which differ by
// noise.
func lastRows(rows []train.Row) (accuracy float64) {
	last := rows[len(rows)-5:]
	for _, r := range last {
		accuracy += float64(r.TestAccAvg) / float64(len(last))
	}
	return accuracy
}

// Eight agents of a method of each family, of which agent 0, which writes the rows, is killed for
// good, and another one. At most one row is missing. A new agent 0 and a new agent in the other slot
// are as accurate as the others after a tenth of the run.
func TestElasticNewcomers(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes; set FSPDA_LONG=1")
	}
	for _, algo := range elasticFamilies {
		t.Run(algo, func(t *testing.T) {
			t.Parallel() // it mostly waits
			e := familyRun(t, algo)
			e.own = elastic("3", "--gradient-time", "0.01", "--checkpoint-every", "1")
			e.startAll()
			e.awaitIteration(1, 600)
			e.kill(0)
			e.advance(e.others(0), 1)
			e.awaitIteration(1, 1000)
			e.kill(3)
			e.await(1, members, 2)
			e.awaitIteration(1, 1400)
			// The one comes to its folder, the other one to another machine.
			if err := os.RemoveAll(filepath.Join(e.out(), "agents", "003")); err != nil {
				t.Fatal(err)
			}
			var took []string
			for k, i := range []int{0, 3} {
				begin := time.Now()
				e.start(i)
				e.await(i, "joining", 1)
				took = append(took, fmt.Sprintf("%.1f s", time.Since(begin).Seconds()))
				e.await(1, members, 3+k)
			}
			rows := e.end()
			missing := familyIterations/100 + 1 - len(rows)
			if missing > 1 || rows[len(rows)-1].AgentsPresent != 8 {
				t.Errorf("%d rows are missing, and %v agents present at the end", missing,
					rows[len(rows)-1].AgentsPresent)
			}
			changes := e.changes()
			for k, i := range []int{0, 3} {
				c := changes[2+k]
				if !slices.Equal(c.Joined, []int{i}) {
					t.Fatalf("changes %v: want agent %d to join in the one of number %d", changes, i, c.Epoch)
				}
				own, others := e.accuracyAt(i, c.At+familyIterations/10)
				t.Logf("agent %d joined after %s in iteration %d; %d iterations later its accuracy is %.4f, "+
					"of the others %.4f; %d rows are missing", i, took[k], c.At, familyIterations/10, own, others,
					missing)
				if own < slices.Min(others)-0.005 {
					t.Errorf("agent %d has an accuracy of %.4f, the others %.4f", i, own, others)
				}
			}
		})
	}
}

// accuracyAt returns the accuracy of an agent's model in iteration t, and the accuracies of the
// other models.
func (e *elasticRun) accuracyAt(agent, t int) (own float64, others []float64) {
	e.t.Helper()
	before := slices.DeleteFunc(e.changes(), func(c membership.Epoch) bool { return c.At > t })
	name := fmt.Sprintf("at%d-of%d", t, agent) // Two agents may join at once.
	dir := e.alone(name, e.log(name+".jsonl", before...), "--iterations", strconv.Itoa(t), "--eval-points", "1")
	text, _ := mustCall(e.t, "eval", dir, "--every-agent", "--json")
	var all struct {
		Models []struct {
			Model    string  `json:"model"`
			Accuracy float64 `json:"accuracy"`
		} `json:"models"`
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all.Models) != e.agents+1 {
		e.t.Fatalf("%v, of %d models", err, len(all.Models))
	}
	for i, m := range all.Models[1:] {
		if i == agent {
			own = m.Accuracy
		} else {
			others = append(others, m.Accuracy)
		}
	}
	return own, others
}

// Members come and go 50 times. The duals of those that are there at the end sum to zero, up to
// rounding, and the log repeats the run.
func TestElasticChurn(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes minutes; set FSPDA_LONG=1")
	}
	for seed, of := range []struct{ algo, dual string }{{"fspda-sa", "lambda"}, {"fspda-storm", "ahead"}} {
		t.Run(of.algo, func(t *testing.T) {
			t.Parallel() // it mostly waits
			const agents, iterations = 5, 20000
			e := newElasticRun(t, agents, "--hidden", "6", "--algo", of.algo, "--graph", "ring", "--iterations",
				strconv.Itoa(iterations), "--eval-points", "10")
			e.own = elastic("2", "--gradient-time", "0.01", "--checkpoint-every", "1")
			e.startAll()
			e.awaitIteration(1, 50)
			draw := rng.New(uint64(seed), "churn")
			away := map[int]bool{}
			for range 50 {
				// Agent 1 sees all of it.
				i := []int{0, 2, 3, 4}[draw.IntN(4)]
				if len(away) == 2 && !away[i] {
					i = slices.Sorted(maps.Keys(away))[draw.IntN(2)]
				}
				if away[i] {
					e.start(i)
					delete(away, i)
				} else {
					e.kill(i)
					away[i] = true
				}
				e.poll(fmt.Sprintf("agent %d away: %v", i, away[i]), func() bool {
					all := e.present()
					return len(all) > 0 && slices.Contains(all, i) != away[i]
				})
				e.awaitIteration(1, e.iteration(1)+20)
				if away[i] && draw.IntN(2) == 0 { // The next one comes on another machine.
					if err := os.RemoveAll(filepath.Join(e.out(), "agents", fmt.Sprintf("%03d", i))); err != nil {
						t.Fatal(err)
					}
				}
			}
			at := e.iteration(1)
			e.end(slices.Collect(maps.Keys(away))...)
			if n := len(e.changes()); n < 50 {
				t.Errorf("%d changes of the members before iteration %d", n, at)
			}
			sum, largest := dualSum(t, e.out(), of.dual, agents)
			t.Logf("%d changes up to iteration %d: the duals sum to at most %.3g in a coordinate, the largest is "+
				"%.3g, their ratio %.2g", len(e.changes()), at, sum, largest, sum/largest)
			if !(sum <= 1e-5*largest) || largest == 0 {
				t.Errorf("the duals sum to %g in a coordinate, and the largest is %g", sum, largest)
			}
		})
	}
}

// dualSum reads the duals of all agents at the end of a run, which are vectors with a name. It
// returns the largest sum over the agents in a coordinate, and the largest dual.
func dualSum(t *testing.T, dir, name string, agents int) (sum, largest float64) {
	t.Helper()
	all := checkpoints(t, dir)
	file, err := safetensors.Open(filepath.Join(all[len(all)-1], "agents.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var sums []float64
	for i := range agents {
		v, err := safetensors.Load[float32](file, fmt.Sprintf("agent%d/%s", i, name))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, make([]float64, len(v)-len(sums))...)
		for k, x := range v {
			sums[k] += float64(x)
			largest = max(largest, math.Abs(float64(x)))
		}
	}
	for _, s := range sums {
		sum = max(sum, math.Abs(s))
	}
	return sum, largest
}

// hangingRun prepares a run of four agents, each of which computes in a program of its own. The
// function that it returns stops the program of an agent, or lets it go on: then the computation of
// the agent hangs, while its process lives.
func hangingRun(t *testing.T, own ...string) (e *elasticRun, signal func(agent int, sig syscall.Signal)) {
	pids := filepath.Join(t.TempDir(), "pids")
	command := fmt.Sprintf("echo $$ >>'%s'$FSPDA_TEST_AGENT; %s", pids, ownModel(t))
	e = newElasticRun(t, 4, "--algo", "dsgd", "--graph", "ring", "--model", "external", "--command", command,
		"--iterations", "1000000", "--eval-points", "10", "--eval-test", "10")
	e.own = own
	return e, func(agent int, sig syscall.Signal) {
		for _, pid := range clients(t, pids+strconv.Itoa(agent)) {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
}

// An agent whose computation hangs while its process lives is named by the others. They go on without
// it, and it joins as a new agent once its computation continues. If members are fixed, all end with
// its name after the timeout.
func TestElasticHang(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("takes a minute; set FSPDA_LONG=1")
	}
	const name = "agent 2 has not advanced in iteration"
	named := func(e *elasticRun, begin time.Time) {
		says := map[int]bool{}
		e.poll("/readyz of all others names agent 2", func() bool {
			for _, i := range e.others(2) {
				if !says[i] && strings.Contains(e.page(i, "/readyz"), name) {
					says[i] = true
					e.t.Logf("agent %d names it after %.1f s", i, time.Since(begin).Seconds())
				}
			}
			return len(says) == 3
		})
		e.t.Logf("all others name agent 2 in /readyz %.1f s after its computation began to hang",
			time.Since(begin).Seconds())
	}
	t.Run("elastic", func(t *testing.T) {
		t.Parallel() // it mostly waits
		e, signal := hangingRun(t, elastic("15")...)
		e.startAll()
		e.awaitIteration(0, 300)
		begin := time.Now()
		signal(2, syscall.SIGSTOP)
		defer signal(2, syscall.SIGKILL)
		named(e, begin)
		e.advance(e.others(2), 1)
		t.Logf("all others are further %.1f s after it began to hang", time.Since(begin).Seconds())
		for _, i := range e.others(2) {
			e.poll("the others are ready", func() bool { return e.page(i, "/readyz") == "ok\n" })
		}
		begin = time.Now()
		signal(2, syscall.SIGCONT)
		e.await(2, "joining", 1)
		t.Logf("it is a new member %.1f s after it goes on", time.Since(begin).Seconds())
		e.advance(e.others(2), 2)
	})
	t.Run("fixed", func(t *testing.T) {
		t.Parallel() // it mostly waits
		e, signal := hangingRun(t, "--timeout", "40s")
		e.startAll()
		e.awaitIteration(0, 300)
		begin := time.Now()
		signal(2, syscall.SIGSTOP)
		defer signal(2, syscall.SIGKILL)
		named(e, begin)
		for i := range e.agents {
			e.poll(fmt.Sprintf("the end of agent %d", i), func() bool { return e.ended(i) == 1 })
			e.await(i, name, 1)
		}
		t.Logf("all have ended with its name %.1f s after it began to hang", time.Since(begin).Seconds())
	})
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
