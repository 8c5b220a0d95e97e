package runfolder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"fspda/internal/bounded"
	"fspda/train/config"
)

// Branch is a checkpoint of a run from which another run goes on in a folder of its own, with
// another length or another course of the step size from there on.
type Branch struct {
	run  string // The folder of the first run.
	from *Checkpoint
}

// OpenBranch opens the checkpoint of a run at an iteration, or with 0 the newest one that fits, and
// refuses one that is no beginning of the run of s.
func OpenBranch(run string, s *config.Setup, at int) (*Branch, error) {
	f := &Folder{Path: run}
	if at == 0 {
		c, _, err := f.OpenCheckpoint(s)
		if err == nil && c == nil {
			err = &FolderError{Path: run, Got: "has no checkpoint", Hint: "name a run that has one"}
		}
		return &Branch{run, c}, err
	}
	c := &Checkpoint{Path: filepath.Join(run, "checkpoints", checkpointName(at))}
	if _, err := os.Stat(c.Path); errors.Is(err, os.ErrNotExist) {
		kept, err := listCheckpoints(filepath.Dir(c.Path))
		return nil, errors.Join(err, &FolderError{Path: run, Got: fmt.Sprintf("has no checkpoint at iteration %d", at),
			Hint: fmt.Sprintf("it has %v: a run with schedule wsd keeps the start of its decay, and "+
				"keep_checkpoints keeps more", kept)})
	}
	bad := c.open(s)
	if bad == nil {
		bad = f.hasRows(s, c)
	}
	if bad == nil {
		return &Branch{run, c}, nil
	}
	bad.Path = c.Path
	switch {
	case strings.HasPrefix(bad.Got, otherConfig):
		bad.Got = strings.Replace(bad.Got, configNow, "this run", 1)
		bad.Hint = "the two may differ in their length and their schedule alone: leave other flags out"
	case bad.Hint == "":
		bad.Hint = "choose another iteration, or the length and the schedule so that step sizes and evaluations " +
			"before it are the same"
	}
	return nil, bad
}

func (b *Branch) Close() error { return b.from.Close() }

// CopyTo copies the checkpoint, the rows and the samples to the folder of the new run. If it is
// killed, the new run can be resumed all the same, from its start.
func (b *Branch) CopyTo(f *Folder, s *config.Setup) error {
	for _, name := range []string{"samples.jsonl", "metrics.jsonl"} { // later rows are dropped when they are opened
		text, err := bounded.File(filepath.Join(b.run, name), 1<<30)
		if err == nil {
			err = replaceText(f.Disk, filepath.Join(f.Path, name), text)
		} else if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return unusable(f.Path, "cannot be written", err)
		}
	}
	dir := filepath.Join(f.Path, "checkpoints")
	if err := f.Disk.MkdirAll(dir); err != nil {
		return unusable(f.Path, "cannot be written", err)
	}
	err := publish(f.Disk, filepath.Join(dir, checkpointName(b.from.Iteration)), s.Config.Keep, s.DecayStart(),
		func(tmp string) error {
			for _, name := range []string{vectorsFile, manifestFile} {
				if err := copyFile(f.Disk, filepath.Join(b.from.Path, name), filepath.Join(tmp, name)); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		return unusable(f.Path, "cannot be written", err)
	}
	return nil
}

func copyFile(d Disk, from, to string) error {
	src, err := bounded.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	_, err = d.WriteFile(to, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
	return err
}
