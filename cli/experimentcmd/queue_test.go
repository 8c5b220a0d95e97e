package experimentcmd

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/cli/command"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "q.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tasks writes a queue of tasks with a folder of its own, and reads it.
func tasks(t *testing.T, text string) (path string, e *bench.Experiment) {
	t.Helper()
	path = write(t, "folder: "+t.TempDir()+"\ntasks:\n"+text)
	e, err := bench.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, e
}

// What cannot be resumed, or what the queue sets itself, is refused with what to do.
func TestRefusedFiles(t *testing.T) {
	for text, want := range map[string]string{
		"tasks: []": "there is nothing to run",
		"tasks: [{name: a/b, command: figure 9}]":                             "name of a folder",
		"tasks: [{name: a, command: figure 9}, {name: a, command: figure 9}]": "occurs twice",
		"tasks: [{name: a, command: figure 9, cores: -1}]":                    "at least 1",
		"tasks: [{name: a, command: bench step}]": "experiment, figure, sweep, tune, theory, " +
			"replay, train",
		"tasks: [{name: a}]": "experiment, figure, sweep, tune, theory, " +
			"replay, train",
		"tasks: [{name: a, command: figure 9 --out x}]":                 "leave it out",
		"tasks: [{name: a, command: [train, --resume=true]}]":           "leave it out",
		`tasks: [{name: a, command: "train --edges 'bernoulli(0.5)'"}]`: "as a list",
		"tasks: [{name: a, command: {figure: 9}}]":                      "a list of words",
		"tasks: [{name: a, command: figure 9, priorty: 1}]":             "each with name, priority, cores, command",
		"jobs: [{name: a, command: figure 9}]":                          "the keys are title",
		"files: [{name: a, file: b.yaml, command: figure 9}]":           "command is set too",
	} {
		if _, err := bench.Read(write(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A task starts on a free core and below the limit of the load. The load that the queue causes does
// not count against it.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		cores, busy, want int
		load, limit       float64
		fits              bool
	}{
		{2, 0, 1, 0.3, 2, true},
		{2, 1, 1, 1.2, 2, true},
		{2, 1, 1, 2.1, 2, false}, // another process uses a core
		{2, 0, 1, 1.9, 2, false},
		{2, 0, 1, 30, 0, true}, // no limit
		{1, 1, 1, 0, 0, false},
		{1, 0, 4, 0, 8, true}, // a task that wants more cores than the queue has runs alone
		{2, 0, 4, 0.3, 2, true},
		{2, 1, 4, 1, 2, false},
		{2, 0, 4, 1.2, 2, false},
	} {
		if got := fits(c.cores, c.busy, c.want, c.load, c.limit); got != c.fits {
			t.Errorf("%+v: %v", c, got)
		}
	}
	path := filepath.Join(t.TempDir(), "loadavg")
	if err := os.WriteFile(path, []byte("3.25 1.1 0.5 2/300 4711\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if load, ok := loadOf(path); !ok || load != 3.25 {
		t.Errorf("load %g, %v", load, ok)
	}
	if _, ok := loadOf(path + "-none"); ok {
		t.Error("a load without a file")
	}
}

// figures returns a program that has the command figure.
func figures() *cobra.Command {
	root := &cobra.Command{Use: "fspda"}
	root.AddCommand(&cobra.Command{Use: "figure", Args: cobra.ArbitraryArgs, Run: func(*cobra.Command, []string) {}})
	return root
}

// The next task is the first of the highest priority that is neither finished, failed nor running.
func TestNext(t *testing.T) {
	path, file := tasks(t, "- {name: low, command: figure 9}\n- {name: high, priority: 3, command: figure 9}\n"+
		"- {name: also-high, priority: 3, command: figure 9}\n")
	q := newQueue(queueFlags{}, path, file.Folder, file.Folder, figures, io.Discard)
	expect := func(want string) {
		t.Helper()
		next, err := q.next()
		got := "none"
		if next != nil {
			got = next.Name
		}
		if err != nil || got != want {
			t.Errorf("next is %s, want %s; %v", got, want, err)
		}
	}
	set := func(name string, s Status, command ...string) {
		t.Helper()
		if err := q.put(name, Record{Command: command, Status: s}); err != nil {
			t.Fatal(err)
		}
	}
	expect("high")
	set("high", Running, "figure", "9") // a queue was killed
	expect("high")
	set("high", Finished, "figure", "9")
	expect("also-high")
	set("high", Finished, "figure", "8") // of another command
	expect("high")
	set("high", Failed, "figure", "9")
	set("also-high", Stopped, "figure", "9")
	expect("also-high")
	q.running["also-high"] = &process{}
	expect("low")
	set("low", Finished, "figure", "9")
	expect("none")
	q.retry = true
	expect("high")
	if got := (&bench.Task{Command: bench.Words{"train"}, Cores: 2}).Arguments("f", true); !slices.Equal(got,
		[]string{"train", "--out", "f", "--threads", "2", "--resume"}) {
		t.Errorf("arguments %q", got)
	}
	if err := os.WriteFile(filepath.Join(file.Folder, "low.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := q.next(); err == nil || !strings.Contains(err.Error(), "low.json") {
		t.Errorf("a damaged record: %v", err)
	}
}

// The priority of a task is that of --nice, whatever that of the queue, unless this is lower.
func TestNice(t *testing.T) {
	for _, c := range []struct {
		nice, own int
		want      []string
	}{{10, 0, []string{"nice", "-n", "10"}}, {19, 10, []string{"nice", "-n", "9"}}, {10, 10, nil}, {0, 0, nil},
		{5, 12, nil}} {
		if got := withNice("nice", c.nice, c.own); !slices.Equal(got, c.want) {
			t.Errorf("--nice %d of a queue at %d: %q, want %q", c.nice, c.own, got, c.want)
		}
	}
	if out, err := exec.Command("nice").Output(); err == nil { // GNU's prints its own
		if got, want := command.Niceness(), strings.TrimSpace(string(out)); strconv.Itoa(got) != want {
			t.Errorf("the priority of this process is %d, want %s", got, want)
		}
	}
}

// A queue that waits for an idle core ends when it is told to.
func TestInterruptedWait(t *testing.T) {
	path, file := tasks(t, "- {name: a, command: figure 9}\n")
	load := write(t, "1.00 1.00 1.00 2/300 4711\n")
	q := newQueue(queueFlags{cores: 1, maxLoad: 1}, path, file.Folder, file.Folder, figures, io.Discard)
	q.load = load
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := q.all(ctx); !errors.Is(err, command.ErrStopped) {
		t.Errorf("error %v, want %v", err, command.ErrStopped)
	}
}

// Tasks that failed and tasks whose processes were ended by others are errors.
func TestFailures(t *testing.T) {
	path, file := tasks(t, "- {name: a, command: figure 9}\n- {name: b, command: figure 9}\n")
	q := newQueue(queueFlags{}, path, file.Folder, file.Folder, figures, io.Discard)
	set := func(name string, s Status) {
		t.Helper()
		if err := q.put(name, Record{Command: []string{"figure", "9"}, Status: s}); err != nil {
			t.Fatal(err)
		}
		if err := q.read(); err != nil {
			t.Fatal(err)
		}
	}
	set("a", Finished)
	set("b", Finished)
	if err := q.failures(); err != nil {
		t.Errorf("of finished tasks: %v", err)
	}
	set("a", Stopped)
	if err := q.failures(); err == nil || !strings.Contains(err.Error(), "ended by others") {
		t.Errorf("of a stopped task: %v", err)
	}
	set("b", Failed)
	if err := q.failures(); err == nil || !strings.Contains(err.Error(), "tasks failed: b") {
		t.Errorf("of a failed task: %v", err)
	}
}
