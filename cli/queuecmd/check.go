package queuecmd

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fspda/train"
)

// checkTasks parses the commands of the tasks that are not finished, each once, with the commands
// of the program. A mistake is then found before the first task starts, not when its turn comes.
func (q *queue) checkTasks() error {
	var errs []error
	for _, t := range q.file.Tasks {
		line := strings.Join(append([]string{t.Name}, t.Command...), "\x00")
		if q.checked[line] {
			continue
		}
		r, err := readRecord(q.file.Folder, t)
		if err == nil && r.Status != Finished {
			err = t.parse(q.root, q.file.Folder)
		}
		if err != nil {
			errs = append(errs, &train.ConfigError{Key: q.path + ": task " + strconv.Quote(t.Name),
				Got: "command " + strconv.Quote(strings.Join(t.Command, " ")), Err: err})
		}
		q.checked[line] = err == nil
	}
	return errors.Join(errs...)
}

// parse reads the command line of a task with the commands below root. folder is that of the queue.
func (t *Task) parse(root *cobra.Command, folder string) error {
	cmd, args, err := root.Find(t.Command)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	fs := cmd.Flags()
	for _, name := range []string{"help", "dry-run", "config"} { // which a task before may have set
		if f := fs.Lookup(name); f != nil {
			err = errors.Join(err, f.Value.Set(f.DefValue))
			f.Changed = false
		}
	}
	if err = errors.Join(err, cmd.ParseFlags(args)); err != nil {
		return cmd.FlagErrorFunc()(cmd, err)
	}
	for _, name := range []string{"help", "dry-run"} {
		if f := fs.Lookup(name); f != nil && f.Changed {
			return errors.New("--" + name + " trains nothing: leave it out")
		}
	}
	if fs.Arg(0) == "list" {
		return errors.New("list trains nothing: name what to run")
	}
	if err := cmd.ValidateArgs(fs.Args()); err != nil {
		return err
	}
	f := fs.Lookup("config")
	if f == nil || !f.Changed || below(folder, f.Value.String()) { // the results of another task
		return nil
	}
	_, err = os.Stat(f.Value.String())
	return err
}

// below reports whether a path is in a folder.
func below(folder, path string) bool {
	from, errFrom := filepath.Abs(folder)
	to, errTo := filepath.Abs(path)
	rest, err := filepath.Rel(from, to)
	return errors.Join(errFrom, errTo, err) == nil && filepath.IsLocal(rest)
}
