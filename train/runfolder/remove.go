package runfolder

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// written lists the entries that a run leaves in its folder.
var written = []string{".lock", "config.yaml", "metrics.jsonl", "metrics.csv", "links.yaml", "shards.json",
	"samples.jsonl", "tokenizer.json",
	"summary.json", "report.html", "report.md", "checkpoints", "tensorboard", "plots", agentsFolder}

// RemoveFolder deletes the folder of a run. It refuses folders without a run, folders in use, and
// folders that hold anything that no run writes.
func RemoveFolder(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return &FolderError{Path: path, Got: "is not a folder", Err: err}
	}
	if _, err := ReadConfig(path); errors.Is(err, os.ErrNotExist) {
		return &FolderError{Path: path, Got: "holds no run (no config.yaml)",
			Hint: "remove it by hand, if that is meant"}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return &FolderError{Path: path, Got: "cannot be read", Err: err}
	}
	var others []string
	for _, e := range entries {
		if !slices.Contains(written, e.Name()) {
			others = append(others, e.Name())
		}
	}
	if len(others) > 0 {
		return &FolderError{Path: path, Got: "holds what no run writes: " + strings.Join(others, ", "),
			Hint: "move it elsewhere, or remove the folder by hand"}
	}
	f := &Folder{Path: path}
	if err := f.lockFolder(); err != nil {
		return err
	}
	homes, _ := filepath.Glob(filepath.Join(path, agentsFolder, "*"))
	for _, home := range homes { // an agent may still run when agent 0 has ended
		l, err := lock(home, "wait for it")
		if err != nil {
			return errors.Join(err, f.lock.Unlock())
		}
		defer l.Unlock()
	}
	// config.yaml first: without it the folder holds no run, even if the rest fails
	err = os.Remove(filepath.Join(path, "config.yaml"))
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err = errors.Join(err, f.lock.Unlock()); err != nil {
		return &FolderError{Path: path, Got: "cannot be removed", Err: err,
			Hint: "remove it as the user whose folder it is"}
	}
	return nil
}
