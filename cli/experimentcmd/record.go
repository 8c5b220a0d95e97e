package experimentcmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fspda/bench"
	"fspda/cli/command"
	"fspda/internal/wholefile"
	"fspda/train"
)

// Record is the state of a task, the file NAME.json beside the task's folder.
type Record struct {
	Command []string `json:"command"`
	Status  Status   `json:"status"`
	Exit    int      `json:"exit"`    // status of the process that ended last
	Seconds float64  `json:"seconds"` // run time of its processes, together
	Version string   `json:"version"` // version of the program that ran it last
}

// Status is the state of a task.
type Status string

const (
	Waiting  Status = "waiting"  // it has not run yet
	Running  Status = "running"  // it is running, or its queue was killed
	Stopped  Status = "stopped"  // it has checkpoints; the queue continues it
	Finished Status = "finished" // its exit status was 0, or 3: a run diverged
	Failed   Status = "failed"   // its exit status was another; --retry starts it again
)

func statusOf(exit int) Status {
	switch exit {
	case 0, command.ExitDiverged:
		return Finished
	case command.ExitStopped, -1: // -1: a signal ended the process
		return Stopped
	}
	return Failed
}

// readRecord reads the record of a task. A task without a record, or with the record of another
// command, is waiting.
func readRecord(folder string, t bench.Task) (Record, error) {
	path := filepath.Join(folder, t.Name+".json")
	r := Record{Command: t.Command, Status: Waiting}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	var old Record
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil {
		return r, &train.FolderError{Path: folder, Got: t.Name + ".json cannot be read", Err: err,
			Hint: "delete it: the task runs again and keeps its finished runs"}
	}
	if !slices.Equal(old.Command, t.Command) {
		return r, nil
	}
	return old, nil
}

func (q *queue) put(name string, r Record) error {
	q.records[name] = r
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(q.folder, name+".json"), append(text, '\n'))
}

// progress is the progress of the runs in the folder of a task.
type progress struct {
	runs, finished int
	done, total    int // iterations of the runs that have begun
}

// progressOf reads the folder of a task: a run, or one folder for each run.
func progressOf(folder string) (p progress) {
	configs, _ := filepath.Glob(filepath.Join(folder, "*", "config.yaml"))
	if _, err := os.Stat(filepath.Join(folder, "config.yaml")); err == nil {
		configs = append(configs, filepath.Join(folder, "config.yaml"))
	}
	for _, c := range configs {
		p.runs++
		o, err := bench.ReadOutcome(filepath.Dir(c))
		if err != nil {
			continue // it has no evaluation yet
		}
		p.total += o.Job.Config.Iterations
		switch {
		case o.Status != "":
			p.finished++
			p.done += o.Job.Config.Iterations
		default:
			p.done += o.Last().Iteration
		}
	}
	return p
}

// table writes the state of all tasks as a table in Markdown.
func (q *queue) table() string {
	var b strings.Builder
	b.WriteString("| task | priority | status | runs finished / begun | iterations of these | hours | command |\n" +
		"|---|---|---|---|---|---|---|\n")
	for _, t := range q.tasks {
		r, p := q.records[t.Name], progressOf(filepath.Join(q.folder, t.Name))
		share := "–"
		if p.total > 0 {
			share = fmt.Sprintf("%.1f %%", 100*float64(p.done)/float64(p.total))
		}
		state := string(r.Status)
		if r.Exit != 0 && r.Status != Running {
			state += fmt.Sprintf(" (exit status %d)", r.Exit)
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %d / %d | %s | %.3f | `fspda %s` |\n", t.Name, t.Priority, state, p.finished,
			p.runs, share, r.Seconds/3600, strings.Join(t.Command, " "))
	}
	return b.String()
}
