//go:build !windows

package cli

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/bench"
	"fspda/cli/command"
)

// The queue of docs/results.md is read, and each of its commands has the flags that it uses.
func TestShippedQueue(t *testing.T) {
	file, err := bench.Read(filepath.Join("..", "bench", "queues", "evidence.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range file.Files {
		cmd, args, err := newRoot(io.Discard, io.Discard).Find(task.Command)
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err != nil {
			t.Errorf("task %s: %v", task.Name, err)
		}
	}
}

// A queue that is killed, and stopped, and started again makes the same runs to the last bit, and
// gives no finished command twice.
func TestQueueKilled(t *testing.T) {
	t.Parallel() // it mostly waits
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sizes := " --data-train 300 --data-test 50 --hidden 4 --batch 8 --eval-points 40 --checkpoint-every 0"
	write := func(name string) string {
		text := "folder: " + filepath.Join(dir, name) + "\ntasks:\n" +
			"- {name: second, command: train --iterations 300" + sizes + "}\n" +
			"- {name: first, priority: 1, command: train --iterations 4000" + sizes + "}\n"
		path := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	log := filepath.Join(dir, "log")
	hear := func() string { // what the queue that began last has said
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	begin := func(path string) *exec.Cmd {
		stderr, err := os.Create(log)
		if err != nil {
			t.Fatal(err)
		}
		defer stderr.Close()
		cmd := exec.Command(program, "queue", path, "--cores", "1", "--max-load", "0", "--nice", "0")
		cmd.Env, cmd.Stderr = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1"), stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	broken := write("broken")
	rows := func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "broken", "first", "metrics.jsonl"))
		return bytes.Count(text, []byte("\n"))
	}
	wait := func(ready func() bool) {
		for deadline := time.Now().Add(time.Minute); !ready() && time.Now().Before(deadline); {
			time.Sleep(2 * time.Millisecond)
		}
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		cmd := begin(broken)
		// Until a queue has started its task, the task of a killed one may still write rows.
		wait(func() bool { return strings.Contains(hear(), "first started") })
		before := rows()
		wait(func() bool { return rows() >= before+3 })
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the status is looked at below
		if signal == syscall.SIGTERM && cmd.ProcessState.ExitCode() != command.ExitStopped {
			t.Errorf("exit status %d\n%s", cmd.ProcessState.ExitCode(), hear())
		}
	}
	if n := rows(); n < 6 || n >= 40 {
		t.Errorf("the first task had %d of 40 rows after both", n)
	}
	for _, path := range []string{broken, write("whole")} {
		if err := begin(path).Wait(); err != nil {
			t.Fatalf("%v\n%s", err, hear())
		}
	}
	for _, run := range []string{"first", "second"} {
		a, b := withoutTimes(t, filepath.Join(dir, "broken", run)), withoutTimes(t, filepath.Join(dir, "whole", run))
		if a != b {
			t.Errorf("%s differs after the kill:\n%s\n%s", run, a, b)
		}
	}
	table, err := os.ReadFile(filepath.Join(dir, "broken", "queue.md"))
	if err != nil || strings.Count(string(table), "| finished | 1 / 1 | 100.0 % |") != 2 {
		t.Errorf("%v\n%s", err, table)
	}
	status, stdout, stderr := call(t, "queue", broken)
	if status != 0 || strings.Contains(stderr, "started") || !strings.Contains(stdout, "| first | 1 | finished |") {
		t.Errorf("again: status %d\n%s\n%s", status, stdout, stderr)
	}
}

// A task that fails does not keep the others from running; the queue names it.
func TestQueueFailure(t *testing.T) {
	t.Parallel() // it mostly waits
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "q.yaml")
	if err := os.WriteFile(path, []byte("folder: "+filepath.Join(dir, "q")+"\ntasks:\n"+
		"- {name: bad, priority: 1, command: train --data mnist --data-dir nosuch}\n"+
		"- {name: good, command: figure 9, cores: 99}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "queue", path, "--max-load", "0", "--cores", "2")
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	text, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != command.ExitFailed || !strings.Contains(string(text), "tasks failed: bad") ||
		!strings.Contains(string(text), "good asks for 99 cores, and the queue has 2") {
		t.Errorf("exit status %d\n%s", cmd.ProcessState.ExitCode(), text)
	}
	if _, err := os.Stat(filepath.Join(dir, "q", "good", "figure.html")); err != nil {
		t.Error(err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "q", "bad.log"))
	if err != nil || !strings.Contains(string(log), "nosuch") {
		t.Errorf("%v\n%s", err, log)
	}
	if status, stdout, _ := call(t, "queue", path, "--list"); status != 0 ||
		!strings.Contains(stdout, "| bad | 1 | failed (exit status 2) |") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}
