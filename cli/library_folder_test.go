//go:build !windows

package cli

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
	"fspda/train"
)

// A run that a program makes with the library leaves the files that "fspda train" leaves, with the
// same numbers, and is finished.
func TestLibraryRunLeavesTheSameFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	status, _, stderr := call(t, "train", "--data-train", "300", "--data-test", "60", "--hidden", "8", "--agents", "4",
		"--batch", "8", "--iterations", "40", "--eval-points", "4", "--threads", "2", "--out", "command")
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	c, err := train.ReadConfig("command")
	if err != nil {
		t.Fatal(err)
	}
	set, err := data.Synthetic(data.SyntheticOptions{Train: 300, Test: 60, Seed: c.Seed})
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: []int{8}})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New()
	engine := model.NewEngine(net, dev)
	setup, err := c.Resolve(set, engine)
	if err != nil {
		t.Fatal(err)
	}
	folder, err := train.OpenFolder("library", setup, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := train.Run(context.Background(), setup, train.Options{Device: dev, Model: engine,
		Folder: folder}); err != nil {
		t.Fatal(err)
	}
	command, library := filesBelow(t, "command"), filesBelow(t, "library")
	if !slices.Equal(command, library) {
		t.Errorf("the command leaves\n%s\nthe library\n%s", strings.Join(command, "\n"), strings.Join(library, "\n"))
	}
	one, err := train.ReadMetrics(filepath.Join("command", "metrics.jsonl"), 41)
	if err != nil {
		t.Fatal(err)
	}
	two, err := train.ReadMetrics(filepath.Join("library", "metrics.jsonl"), 41)
	if err != nil {
		t.Fatal(err)
	}
	if len(one) != 5 || len(two) != 5 || one[4].TestAccAvg != two[4].TestAccAvg ||
		one[4].BitsTotal != two[4].BitsTotal {
		t.Errorf("the command has the rows %+v, the library %+v", one, two)
	}
	text, err := os.ReadFile(filepath.Join("library", "summary.json"))
	if err != nil || !strings.Contains(string(text), `"status": "finished"`) {
		t.Errorf("%v\n%s", err, text)
	}
}

// filesBelow lists the files of a folder; the names of event files have the time and the process.
func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		before, _, _ := strings.Cut(filepath.ToSlash(name), "tfevents")
		names = append(names, before)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
