package queuecmd

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

	"fspda/cli/command"
	"fspda/internal/bounded"
	"fspda/train"
)

// File is a queue: commands with priorities.
type File struct {
	Folder string `yaml:"folder"` // of the results; default runs/queue-FILE
	Tasks  []Task `yaml:"tasks"`
}

// Task is one command of a queue.
type Task struct {
	Name     string `yaml:"name"`     // of its folder, below that of the queue
	Priority int    `yaml:"priority"` // higher ones run first; equal ones in the order of the file
	Cores    int    `yaml:"cores"`    // that it uses; default 1
	Command  words  `yaml:"command"`  // without the name of the program, --out and --threads
}

// words is a command line: a list, or a text that is split at spaces.
type words []string

// UnmarshalYAML reads a list of words or a text.
func (w *words) UnmarshalYAML(text []byte) error {
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
var resumable = []string{"figure", "sweep", "tune", "theory", "replay", "train"}

// plainName matches names of folders.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ReadFile reads a queue from a YAML file and checks it.
func ReadFile(path string) (*File, error) {
	text, err := bounded.YAMLFile(path)
	if err == nil {
		err = bounded.YAML(text)
	}
	if err != nil {
		return nil, &train.ConfigError{Key: "queue", Got: path, Err: err}
	}
	f := new(File)
	if err := yaml.UnmarshalWithOptions(text, f, yaml.Strict()); err != nil {
		return nil, &train.ConfigError{Key: path, Err: err,
			Want: "the keys are folder, and tasks, each with name, priority, cores, command"}
	}
	if f.Folder == "" {
		base := filepath.Base(path)
		f.Folder = filepath.Join(command.RunsDir, "queue-"+strings.TrimSuffix(base, filepath.Ext(base)))
	}
	if len(f.Tasks) == 0 {
		return nil, &train.ConfigError{Key: path, Got: "has no tasks",
			Want: "add tasks: [{name: NAME, command: figure 9}]"}
	}
	var errs []error
	seen := map[string]bool{}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		t.Cores = cmp.Or(t.Cores, 1)
		errs = append(errs, t.check(path, seen[t.Name]))
		seen[t.Name] = true
	}
	return f, errors.Join(errs...)
}

// check validates a task.
func (t *Task) check(path string, twice bool) error {
	key := path + ": task " + strconv.Quote(t.Name)
	switch {
	case !plainName.MatchString(t.Name):
		return &train.ConfigError{Key: key, Want: "expected a name of a folder: letters, digits, points and dashes"}
	case t.Name == "queue.md", slices.Contains([]string{".log", ".json"}, filepath.Ext(t.Name)):
		return &train.ConfigError{Key: key, Want: "is the name of a file that the queue writes: give the task another"}
	case twice:
		return &train.ConfigError{Key: key, Got: "occurs twice", Want: "give each task a name of its own"}
	case t.Cores < 1:
		return &train.ConfigError{Key: key, Got: fmt.Sprintf("cores %d", t.Cores), Want: "expected at least 1"}
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

// arguments returns the command line with the folder of the results and the cores.
func (t *Task) arguments(folder string, resume bool) []string {
	args := append(slices.Clone(t.Command), "--out", folder, "--threads", strconv.Itoa(t.Cores))
	if resume && t.Command[0] == "train" {
		args = append(args, "--resume")
	}
	return args
}
