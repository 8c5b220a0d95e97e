package figurecmd

import (
	"errors"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fspda/bench"
	"fspda/train"
)

// checkTasks checks the commands of the tasks that are not finished, each once, as the program does
// before it runs one. A mistake is then found before the first task starts, not when its turn comes.
func (q *queue) checkTasks() error {
	var errs []error
	for _, t := range q.tasks {
		line := strings.Join(append([]string{t.Name}, t.Command...), "\x00")
		if q.checked[line] {
			continue
		}
		r, err := readRecord(q.folder, t)
		if err == nil && r.Status != Finished {
			err = parseTask(t, q.root(), q.folder)
		}
		if err != nil {
			errs = append(errs, &train.ConfigError{Key: q.path + ": task " + strconv.Quote(t.Name),
				Got: "command " + strconv.Quote(strings.Join(t.Command, " ")), Err: err})
		}
		q.checked[line] = err == nil
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
		return check(cmd, args)
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
