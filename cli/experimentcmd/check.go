package experimentcmd

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/train"
)

// read reads the list and the records of its tasks, and checks the commands of tasks that are not
// finished, each once, as the program does before it runs one. A mistake is then found before the
// first task starts.
func (q *queue) read() error {
	e, err := bench.Read(q.path)
	if err != nil {
		return err
	}
	if e.Folder != q.given {
		return &train.ConfigError{Key: q.path, Got: "folder " + e.Folder,
			Want: "it was " + q.given + " when the queue began: start another queue for another folder"}
	}
	q.tasks = e.Files
	var errs []error
	for _, t := range q.tasks {
		if q.running[t.Name] != nil { // its record describes the command that runs
			continue
		}
		r, err := readRecord(q.folder, t)
		q.records[t.Name] = r
		line := strings.Join(append([]string{t.Name}, t.Command...), "\x00")
		if err == nil && r.Status != Finished && !q.checked[line] {
			err = parseTask(t, q.root(), q.folder)
		}
		if q.checked[line] = err == nil; err != nil {
			errs = append(errs, &train.ConfigError{Key: q.path + ": task " + strconv.Quote(t.Name),
				Got: "command " + strconv.Quote(strings.Join(t.Command, " ")), Err: err})
		}
	}
	return errors.Join(errs...)
}

// parseTask reads the command line of a task and the files that it names, with a program of its
// own, and runs nothing. folder is the queue's folder: a file below it may be a result of another
// task.
func parseTask(t bench.Task, root *cobra.Command, folder string) error {
	cmd, _, err := root.Find(t.Command)
	if err != nil {
		return err
	}
	check, read := cmd.PreRunE, false
	cmd.PreRunE = nil
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		read = true
		fs := cmd.Flags()
		file := fs.Arg(0)
		if f := fs.Lookup("config"); f != nil && f.Changed {
			file = f.Value.String()
		}
		switch {
		case fs.Changed("dry-run"):
			return errors.New("--dry-run trains nothing: leave it out")
		case fs.Arg(0) == "list":
			return errors.New("list trains nothing: name what to run")
		case check == nil, file != "" && below(folder, file):
			return nil
		}
		err := check(cmd, args)
		if e, readErr := bench.Read(file); err == nil && readErr == nil && e.Kind() == bench.Queue {
			return errors.New("the file lists others: list these here")
		}
		return err
	}
	root.SetArgs(t.Command)
	if err := root.Execute(); err != nil || read {
		return err
	}
	return errors.New("--help trains nothing: leave it out")
}

// below reports whether a path is in a folder.
func below(folder, path string) bool {
	from, errFrom := filepath.Abs(folder)
	to, errTo := filepath.Abs(path)
	rest, err := filepath.Rel(from, to)
	return errors.Join(errFrom, errTo, err) == nil && filepath.IsLocal(rest)
}
