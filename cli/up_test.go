//go:build !windows

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/internal/rng"
	"fspda/internal/testing/disttest"
)

var (
	pid  = regexp.MustCompile(`started.*agent (\d+), pid (\d+)`)
	wire = regexp.MustCompile(`"wire_bytes":\d+`)
)

// processes runs "fspda up" as a process and calls each with the process of every agent that
// starts. It returns the output.
func processes(t *testing.T, args []string, each func(agent, pid int)) string {
	t.Helper()
	out, err := tryProcesses(args, each)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryProcesses is processes for any goroutine of a test.
func tryProcesses(args []string, each func(agent, pid int)) (string, error) {
	var out, log bytes.Buffer
	cmd, said, err := startUp(&out, args...)
	if err != nil {
		return "", err
	}
	sc := bufio.NewScanner(io.TeeReader(said, &log))
	for sc.Scan() {
		if m := pid.FindStringSubmatch(sc.Text()); m != nil {
			agent, _ := strconv.Atoi(m[1])
			id, _ := strconv.Atoi(m[2])
			each(agent, id)
		}
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, log.String())
	}
	return out.String(), nil
}

// startUp starts "fspda up" as a process. It returns the process and its standard error. The output
// goes to out, which may be nil.
func startUp(out io.Writer, args ...string) (cmd *exec.Cmd, said io.Reader, err error) {
	cmd = exec.Command(os.Args[0], append([]string{"up"}, args...)...)
	cmd.Env, cmd.Stdout = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1"), out
	if said, err = cmd.StderrPipe(); err == nil {
		err = cmd.Start()
	}
	return cmd, said, err
}

// vectors returns the checksum of the vectors of all agents at the end of a run.
func vectors(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "checkpoints", "iter-*", "manifest.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no checkpoint in %s: %v", dir, err)
	}
	text, err := os.ReadFile(names[len(names)-1])
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		SHA256 string `json:"vectors_sha256"`
	}
	if err := json.Unmarshal(text, &m); err != nil || m.SHA256 == "" {
		t.Fatalf("%s: %v", names[0], err)
	}
	return m.SHA256
}

// sameRun compares two run folders: all metrics except times and bytes sent, and the vectors of
// every agent.
func sameRun(t *testing.T, one, many string) {
	t.Helper()
	if a, b := wire.ReplaceAllString(metricRows(t, one), ""), wire.ReplaceAllString(metricRows(t, many), ""); a != b {
		t.Errorf("other metrics:\n%s\n%s", a, b)
	}
	if vectors(t, one) != vectors(t, many) {
		t.Error("other models")
	}
}

// Four processes, of which three are killed, agent 0 among them, have the metrics and the weights
// of one process, bit for bit.
func TestUpIsTrain(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
	args := []string{"--data-train", "400", "--data-test", "100", "--hidden", "6", "--batch", "16", "--agents", "4",
		"--iterations", "1500", "--eval-points", "6", "--checkpoint-every", "0.1"}
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, args...)...); status != 0 {
		t.Fatal(stderr)
	}
	killed := map[int]bool{3: true} // it lives
	out := processes(t, append(args, "--out", many), func(agent, pid int) {
		if !killed[agent] {
			killed[agent] = true
			time.AfterFunc(time.Duration(500+100*agent)*time.Millisecond,
				func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		}
	})
	if !strings.Contains(out, "finished") {
		t.Errorf("the table:\n%s", out)
	}
	sameRun(t, one, many)
	for _, name := range []string{"summary.json", "report.html", "config.yaml", "shards.json",
		"plots/training_loss-bits.svg"} {
		if _, err := os.Stat(filepath.Join(many, name)); err != nil {
			t.Error(err)
		}
	}
}

// The agents of "fspda up" in a job of a launcher, which has one process, are those of up.
// The page of "up" shows the rows of the run while its agents train.
func TestUpShowsItsPage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shown")
	cmd, said, err := startUp(nil, quick("--agents", "2", "--iterations", "10000000", "--eval-points", "100000",
		"--out", dir,
		"--web", "127.0.0.1:0")[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, said)
		_ = cmd.Wait() // it was stopped
	}()
	address := regexp.MustCompile(`url (http[^,\s]+)`)
	url := ""
	for sc := bufio.NewScanner(said); url == "" && sc.Scan(); {
		if m := address.FindStringSubmatch(sc.Text()); m != nil {
			url = m[1]
		}
	}
	if url == "" {
		t.Fatal("no address of a page was logged")
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r, err := http.Get(url + "files/shown/metrics.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		rows, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err == nil && r.StatusCode == http.StatusOK && bytes.Contains(rows, []byte(`"test_acc_avg"`)) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no rows: status %d, %.200s", r.StatusCode, rows)
		}
	}
}

func TestUpInJob(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, v := range []string{"SLURM_PROCID=0", "SLURM_NTASKS=1", "RANK=7", "WORLD_SIZE=8",
		"MASTER_ADDR=nowhere.invalid", "MASTER_PORT=abc", "OMPI_COMM_WORLD_RANK=0",
		"OMPI_COMM_WORLD_SIZE=1", "JOB_COMPLETION_INDEX=x"} {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	out := processes(t, []string{"-n", "2", "--out", filepath.Join(t.TempDir(), "run"), "--data-train", "100",
		"--data-test", "20", "--hidden", "4", "--batch", "8", "--iterations", "5"}, func(int, int) {})
	if !strings.Contains(out, "finished") {
		t.Errorf("the table:\n%s", out)
	}
}

// What a limit of the system refuses is named, with the limit, by the run of many processes too.
func TestUpNamesLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for name, c := range map[string]struct {
		limit, args string
		want        []string
	}{
		"few open files":        {"ulimit -n 24", "up -n 8", []string{"too many open files", "ulimit -n"}},
		"hardly any open files": {"ulimit -n 8", "up -n 2", []string{"too many open files", "ulimit -n"}},
		"open files of one":     {"ulimit -n 8", "train", []string{"too many open files", "ulimit -n"}},
		"size of files":         {"ulimit -f 40", "up -n 2", []string{"file too large", "ulimit -f"}},
		"size of files of one":  {"ulimit -f 1", "train", []string{"file too large", "ulimit -f"}},
		"a port that is taken": {":", "up -n 2 --metrics-listen " + l.Addr().String(),
			[]string{"address already in use"}},
		"a folder that is a file": {":", "up -n 2 --out /dev/null", []string{"/dev/null", "not a directory"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			args := "--data-train 100 --data-test 20 --hidden 4 --batch 8 --iterations 500 --eval-points 200"
			if !strings.Contains(c.args, "--out") {
				args += " --out " + filepath.Join(t.TempDir(), "run")
			}
			cmd := exec.Command("sh", "-c", c.limit+` && exec "$0" `+c.args+" "+args, os.Args[0])
			cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
			out, err := cmd.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			last := lines[len(lines)-1]
			if status := cmd.ProcessState.ExitCode(); err == nil || status == command.ExitStopped {
				t.Errorf("exit status %d\n%s", status, out)
			}
			for _, want := range c.want {
				if !strings.Contains(last, want) {
					t.Errorf("no %q in %q\n%s", want, last, out)
				}
			}
		})
	}
}

// The agents of a start that is killed stop as they are told to: at one iteration, with a
// checkpoint.
func TestUpIsKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	const agents = 3
	dir := filepath.Join(t.TempDir(), "run")
	cmd, said, err := startUp(nil, "--data-train", "400", "--data-test", "100", "--hidden", "6", "--batch", "16",
		"--agents", strconv.Itoa(agents), "--iterations", "1000000", "--checkpoint-every", "0", "--out", dir)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for sc := bufio.NewScanner(said); sc.Scan() && !strings.Contains(sc.Text(), "evaluation"); {
		if m := pid.FindStringSubmatch(sc.Text()); m != nil {
			id, _ := strconv.Atoi(m[2])
			pids = append(pids, id)
		}
	}
	time.Sleep(500 * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for _, id := range pids {
		for began := time.Now(); syscall.Kill(id, 0) == nil; time.Sleep(50 * time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("process %d of an agent goes on", id)
			}
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, "agents", "*", "checkpoints", "iter-*"))
	if err != nil || len(left) != agents {
		t.Fatalf("%d agents have left a checkpoint, want %d: %v, %v", len(left), agents, left, err)
	}
	for _, name := range left {
		if filepath.Base(name) != filepath.Base(left[0]) {
			t.Errorf("the agents stopped at different iterations: %v", left)
		}
	}
}

// Three processes that train a language model, of which two are killed, have the metrics and the
// weights of one process.
func TestUpOnText(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("starts processes as TestUpIsTrain does: set FSPDA_LONG=1")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
	args := []string{"--data", "synthetic-text", "--data-train", "4000", "--data-test", "200", "--layers", "1",
		"--heads", "2", "--width", "8", "--block", "8", "--batch", "2", "--agents", "3", "--edges", "one-edge",
		"--density", "0.2", "--iterations", "900", "--eval-points", "3", "--sample-tokens", "0",
		"--checkpoint-every", "0.1"}
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, args...)...); status != 0 {
		t.Fatal(stderr)
	}
	killed, starts := map[int]bool{2: true}, 0 // it lives
	processes(t, append(args, "--out", many), func(agent, pid int) {
		starts++
		if !killed[agent] {
			killed[agent] = true
			time.AfterFunc(time.Duration(400+200*agent)*time.Millisecond,
				func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		}
	})
	t.Logf("%d processes were started", starts)
	sameRun(t, one, many)
}

// A disk that is full when the results are written ends the run with a status of its own. Resumed
// with room on the disk, it finishes with the results of an undisturbed one.
func TestUpFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil || testing.Short() {
		t.Skip("starts processes, on a system with /dev/full")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
	args := []string{"--data-train", "200", "--data-test", "50", "--hidden", "4", "--batch", "8", "--agents", "2",
		"--iterations", "30", "--eval-points", "2"}
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, args...)...); status != 0 {
		t.Fatal(stderr)
	}
	config, err := os.ReadFile(filepath.Join(one, "config.yaml"))
	full := filepath.Join(many, ".summary.json.writing")
	if err := errors.Join(err, os.Mkdir(many, 0o755), os.Symlink("/dev/full", full),
		os.WriteFile(filepath.Join(many, "config.yaml"), config, 0o600)); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--resume", "--out", many)
	var exit *exec.ExitError
	_, err = tryProcesses(args, func(int, int) {})
	if !errors.As(err, &exit) || exit.ExitCode() != command.ExitDiskFull ||
		!strings.Contains(err.Error(), "make room, then resume with --resume") {
		t.Fatalf("it ended with %v", err)
	}
	if err := os.Remove(full); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	processes(t, args, func(int, int) {})
	sameRun(t, one, many)
}

// A second start in the folder of a run is refused by the launcher and takes nothing from the
// first, whose agents are still restarted.
func TestUpTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	out := filepath.Join(t.TempDir(), "run")
	args := []string{"-n", "2", "--out", out, "--data-train", "200", "--data-test", "50", "--hidden", "4", "--batch",
		"8", "--iterations", "6000", "--eval-points", "2", "--checkpoint-every", "0.1"}
	starts := 0
	processes(t, args, func(agent, pid int) {
		starts++
		if agent != 1 || starts > 2 {
			return
		}
		go func() {
			for i := 0; i < 100; i++ { // agent 0 writes it
				if _, err := os.Stat(filepath.Join(out, "config.yaml")); err == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
			status, _, stderr := call(t, append([]string{"up", "--resume"}, args...)...)
			if status != command.ExitBadInput || !strings.Contains(stderr, "in use") || strings.Contains(stderr, "[") {
				t.Errorf("a second start: exit status %d, %s", status, stderr)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}()
	})
	if starts < 3 {
		t.Errorf("%d processes started, want the killed one to be started again", starts)
	}
	if left, err := filepath.Glob(filepath.Join(out, "agents", "up", "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// Agents do not log that others end their connections after the run.
func TestUpEndsQuietly(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	cmd := exec.Command(os.Args[0], "up", "-n", "4", "--data-train", "200", "--data-test", "50", "--hidden", "4",
		"--batch", "8", "--iterations", "40", "--eval-points", "2", "--out", filepath.Join(t.TempDir(), "run"))
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	out, err := cmd.CombinedOutput()
	_, after, _ := bytes.Cut(out, []byte("iteration 40"))
	if err != nil || bytes.Contains(after, []byte("reconnecting")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// Flags of up that contradict each other or the run to resume are refused before a process starts.
func TestUpRefusals(t *testing.T) {
	dir := t.TempDir()
	three := filepath.Join(dir, "three")
	if status, _, stderr := call(t, "train", "--quiet", "--agents", "3", "--out", three, "--data-train", "200",
		"--data-test", "50", "--hidden", "4", "--batch", "8", "--iterations", "4", "--eval-points",
		"2"); status != 0 {
		t.Fatal(stderr)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"algo":     {[]string{"--async", "--algo", "dsgd"}, "--async is --algo fspda-async"},
		"clock":    {[]string{"--async", "--clock", "virtual"}, "--async is --clock real"},
		"agents":   {[]string{"-n", "3", "--agents", "4"}, "--processes 3 --agents 4"},
		"resume":   {[]string{"-n", "4", "--resume", "--out", three}, "agents (3 there, 4 here)"},
		"alpha":    {[]string{"--resume", "--out", three, "--alpha", "0.2"}, "alpha (0.3 there, 0.2 here)"},
		"auto":     {[]string{"--resume", "--out", three, "--eta", "0.05"}, "eta ("},
		"packing":  {[]string{"--packing", "zip"}, `--packing: no compression is named "zip"`},
		"name":     {[]string{"--run", "a b"}, `--run: the run is named "a b"`},
		"links":    {[]string{"--links", "nosuch.yaml"}, "links nosuch.yaml: stat nosuch.yaml"},
		"restarts": {[]string{"--restarts", "-1"}, "--restarts -1: expected 0 or more"},
		"length":   {[]string{"--resume", "--out", three, "--iterations", "5"}, "use a multiple of 2"},
	} {
		status, _, stderr := call(t, append([]string{"up", "--out", filepath.Join(dir, "none")}, c.args...)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "started") {
			t.Errorf("%s: exit status %d, %s", name, status, stderr)
		}
	}
	for _, path := range []string{filepath.Join(dir, "none"), filepath.Join(three, "agents")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
}

// Ten processes on real MNIST, one of which is killed about every second, at random.
func TestUpOnMNIST(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: a minute long; set FSPDA_LONG=1")
	}
	dir := t.TempDir()
	one, many := filepath.Join(dir, "one"), filepath.Join(dir, "many")
	args := []string{"--data", "mnist", "--data-dir", mnistFolder(t), "--partition", "sorted", "--agents", "10",
		"--iterations", "3000", "--eval-points", "4", "--metrics", "test", "--checkpoint-every", "2"}
	if status, _, stderr := call(t, append([]string{"train", "--quiet", "--out", one}, args...)...); status != 0 {
		t.Fatal(stderr)
	}
	s, kills := rng.New(1, "kills"), 0
	processes(t, append(args, "--out", many, "--restarts", "1000"), func(_, pid int) {
		if s.IntN(2) == 0 && kills < 20 {
			kills++
			time.AfterFunc(time.Duration(2000+s.IntN(8000))*time.Millisecond,
				func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		}
	})
	t.Logf("%d processes were killed", kills)
	sameRun(t, one, many)
}

// Invalid arguments are refused, with advice.
func TestAgentRefusals(t *testing.T) {
	base := []string{"agent", "--agents", "2", "--out", filepath.Join(t.TempDir(), "x")}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no rank":   {[]string{"--join", "127.0.0.1:1", "--insecure"}, "--rank is missing"},
		"rank":      {[]string{"--join", "127.0.0.1:1", "--insecure", "--rank", "2"}, "from 0 to 1"},
		"nowhere":   {[]string{"--rank", "0", "--insecure"}, "--join"},
		"open door": {[]string{"--rank", "1", "--join", "10.0.0.1:4700", "--insecure"}, "anybody could join"},
		"any door": {[]string{"--rank", "0", "--join", "127.0.0.1:1", "--listen", "0.0.0.0:1", "--insecure"},
			"anybody could join"},
		"no certs":     {[]string{"--rank", "0", "--join", "10.0.0.1:4700"}, "--certs"},
		"wrong certs":  {[]string{"--rank", "0", "--join", "10.0.0.1:4700", "--certs", t.TempDir()}, "fspda certs"},
		"open cluster": {[]string{"--rank", "0", "--nats", "nats://10.0.0.1:4222"}, "--insecure"},
		"both":         {[]string{"--rank", "0", "--join", "10.0.0.1:4700", "--nats", "nats://x"}, "--nats"},
		"packing":      {[]string{"--rank", "0", "--join", "127.0.0.1:1", "--insecure", "--packing", "zip"}, "zip"},
		"not a number": {[]string{"--rank", "x"}, "--rank"},
	} {
		status, _, stderr := call(t, append(append([]string{}, base...), append(c.args, "--data-train", "100",
			"--data-test", "20", "--batch", "8")...)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %s", name, status, stderr)
		}
	}
}

// A launcher that starts another number of processes than the file has agents is refused.
func TestAgentCountDiffers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte("agents: 10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RANK", "0")
	t.Setenv("WORLD_SIZE", "2")
	status, _, stderr := call(t, "agent", "-c", file, "--join", "127.0.0.1:1", "--insecure")
	if status != command.ExitBadInput || !strings.Contains(stderr, "WORLD_SIZE") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	// An agent that is told its rank is no process of the launcher: its rank is one of ten.
	for _, rank := range []string{"0", "9", "10"} {
		status, _, stderr := call(t, "agent", "-c", file, "--join", "127.0.0.1:1", "--rank", rank, "--certs", "none")
		want := "none" // the certificates
		if rank == "10" {
			want = "expected a rank from 0 to 9"
		}
		if status != command.ExitBadInput || strings.Contains(stderr, "WORLD_SIZE") || !strings.Contains(stderr, want) {
			t.Errorf("rank %s: exit status %d, %s", rank, status, stderr)
		}
	}
}

// An agent with --resume does not start without a checkpoint, and a timeout that a busy process
// could exceed is refused.
func TestAgentResumeRefuses(t *testing.T) {
	args := []string{
		"agent",
		"--agents",
		"2",
		"--rank",
		"1",
		"--join",
		"127.0.0.1:1",
		"--insecure",
		"--data-train",
		"400",
		"--data-test",
		"100",
		"--out",
		filepath.Join(t.TempDir(), "run"),
	}
	for flag, want := range map[string]string{"--resume": "no checkpoint to resume from", "--timeout=1s": "from " +
		"10s on"} {
		status, _, stderr := call(t, append(args, flag)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", flag, status, stderr)
		}
	}
}

// Two agents of one machine use certificates made by fspda certs.
func TestCertsCommand(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := filepath.Join(t.TempDir(), "certs")
	if status, stdout, stderr := call(t, "certs", "--out", dir, "--run", "digits", "-n", "2"); status != 0 ||
		!strings.Contains(stdout, "agent-RANK.pem") {
		t.Fatalf("exit status %d, %s", status, stderr)
	}
	if status, _, stderr := call(t, "certs", "--out", dir, "--run", "a b"); status != command.ExitBadInput ||
		!strings.Contains(stderr, "a b") {
		t.Errorf("exit status %d, %s", status, stderr)
	}
	port := strconv.Itoa(disttest.UnusedPort(t))
	out := filepath.Join(t.TempDir(), "run")
	done := make(chan string, 2)
	for rank := range 2 {
		go func() {
			status, _, stderr := call(t, "agent", "--run", "digits", "--certs", dir, "--join", "127.0.0.1:"+port,
				"--listen", "127.0.0.1:"+map[bool]string{true: port, false: "0"}[rank == 0], "--rank",
				strconv.Itoa(rank), "--out", out, "--agents", "2", "--data-train", "200", "--data-test", "50",
				"--hidden", "4", "--batch", "8", "--iterations", "30", "--eval-points", "1")
			if status != 0 || strings.Contains(stderr, ", ,") {
				done <- stderr
				return
			}
			done <- ""
		}()
	}
	for range 2 {
		if stderr := <-done; stderr != "" {
			t.Error(stderr)
		}
	}
}

// certs refuses numbers that are typing errors, and hosts that no certificate can have, and says
// what to do about a folder that it cannot make.
func TestCertsRefusals(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "certs")
	for want, args := range map[string][]string{
		"--agents 100000000: expected 1 to": {"-n", "100000000"},
		"--days 200000: expected 1 to":      {"--days", "200000"},
		"--nats-server is empty":            {"--nats-server", ""},
		`--nats-server "a b"`:               {"--nats-server", "a b"},
		"a folder that you may write to":    {"--out", filepath.Join(file, "certs")},
	} {
		status, _, stderr := call(t, append([]string{"certs", "--out", out}, args...)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d, %s", args, status, stderr)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused call made the folder")
	}
	if status, _, stderr := call(t, "certs", "--out", out, "-n", "1", "--nats-server",
		"nats-1.example.org,*.example.org,10.0.0.1,::1"); status != 0 {
		t.Errorf("exit status %d, %s", status, stderr)
	}
}

// fspda up --metrics-listen serves the metrics of each agent at a port of its own.
func TestUpMetrics(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	shows := regexp.MustCompile(`\[(\d)\].*url (http://[^,\s]+/metrics)`)
	seen := map[string]bool{}
	cmd, said, err := startUp(nil, "-n", "2", "--metrics-listen", "127.0.0.1:0", "--data-train", "100", "--data-test",
		"20", "--hidden", "3", "--batch", "8", "--iterations", "1000000", "--eval-points", "2", "--out",
		filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	stop := func() { _ = cmd.Process.Signal(os.Interrupt) }
	late := time.AfterFunc(5*time.Minute, stop) // The test fails, and leaves no process behind.
	defer late.Stop()
	for sc := bufio.NewScanner(said); sc.Scan(); {
		m := shows.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		if text := page(t, m[2]); !strings.Contains(text, `rank="`+m[1]+`"`) {
			t.Errorf("agent %s shows\n%s", m[1], text)
		}
		if seen[m[1]] = true; len(seen) == 2 {
			stop()
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d agents show metrics, want 2", len(seen))
	}
}

// page returns the text at an address.
func page(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
