package bench

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"fspda/train"
)

// Task is an entry of [Experiment.Files]: a file of an experiment, or a command of the program.
type Task struct {
	Name     string `yaml:"name"`     // Name of its folder. The default is the name of its file.
	Priority int    `yaml:"priority"` // Higher ones run first; equal ones in the order of the file.
	Cores    int    `yaml:"cores"`    // Number of cores that it uses; default 1.
	File     string `yaml:"file"`     // A file of an experiment, in place of Command.
	Command  Words  `yaml:"command"`  // Words without the name of the program, --out and --threads.
}

// UnmarshalYAML reads the keys of a task, or the name of a file.
func (t *Task) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&t.File) == nil {
		return nil
	}
	type keys Task
	return unmarshal((*keys)(t))
}

// Words is a command line: a list, or a text that is split at spaces.
type Words []string

func (w *Words) UnmarshalYAML(text []byte) error {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		if strings.ContainsAny(v, `"'\`) {
			return fmt.Errorf("command %s: quotes are not read: write the words as a list, [figure, 1, ...]", v)
		}
		*w = strings.Fields(v)
	case []any:
		for _, word := range v {
			*w = append(*w, fmt.Sprint(word))
		}
	default:
		return fmt.Errorf("command %v: expected a text or a list of words", v)
	}
	return nil
}

// resumable are the commands that continue their runs when they are given again.
var resumable = []string{"experiment", "figure", "sweep", "tune", "theory", "replay", "train"}

// taskName matches names of folders.
var taskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkFiles validates the tasks and sets the keys that they leave out.
func (e *Experiment) checkFiles() error {
	if len(e.Base)+len(e.Variants)+len(e.Network)+len(e.Seeds)+len(e.Panels) > 0 || e.Search != nil {
		return &train.ConfigError{Key: "files", Want: "are experiments of their own: base, variants, network, seeds, " +
			"search and panels have no effect on them; leave these out"}
	}
	var errs []error
	seen := map[string]bool{}
	for i := range e.Files {
		t := &e.Files[i]
		t.Cores = cmp.Or(t.Cores, 1)
		if t.File != "" && len(t.Command) == 0 {
			t.Name = cmp.Or(t.Name, strings.TrimSuffix(filepath.Base(t.File), filepath.Ext(t.File)))
			t.Command = Words{"experiment", t.File}
			t.File = ""
		}
		errs = append(errs, t.check(seen[t.Name]))
		seen[t.Name] = true
	}
	return errors.Join(errs...)
}

func (t *Task) check(twice bool) error {
	key := "task " + strconv.Quote(t.Name)
	switch {
	case !taskName.MatchString(t.Name):
		return &train.ConfigError{Key: key, Want: "expected a name of a folder: letters, digits, points and dashes"}
	case t.Name == "queue.md", slices.Contains([]string{".log", ".json"}, filepath.Ext(t.Name)):
		return &train.ConfigError{Key: key, Want: "is the name of a file that the queue writes: give the task another"}
	case twice:
		return &train.ConfigError{Key: key, Got: "occurs twice", Want: "give each task a name of its own"}
	case t.Cores < 1:
		return &train.ConfigError{Key: key, Got: fmt.Sprintf("cores %d", t.Cores), Want: "expected at least 1"}
	case t.File != "":
		return &train.ConfigError{Key: key, Got: "file " + t.File, Want: "command is set too: leave one of the two out"}
	case len(t.Command) == 0 || !slices.Contains(resumable, t.Command[0]):
		return &train.ConfigError{Key: key, Got: fmt.Sprintf("command %q", strings.Join(t.Command, " ")),
			Want: "expected one that resumes its runs: " + strings.Join(resumable, ", ")}
	}
	for _, word := range t.Command {
		for _, flag := range []string{"--out", "--threads", "--resume"} {
			if word == flag || strings.HasPrefix(word, flag+"=") {
				return &train.ConfigError{Key: key, Got: word, Want: "leave it out: the queue sets it"}
			}
		}
	}
	return nil
}

// Arguments returns the command line with the folder of the results and the cores.
func (t *Task) Arguments(folder string, resume bool) []string {
	args := append(slices.Clone(t.Command), "--out", folder, "--threads", strconv.Itoa(t.Cores))
	if resume && t.Command[0] == "train" {
		args = append(args, "--resume")
	}
	return args
}
