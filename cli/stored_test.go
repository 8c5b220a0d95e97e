//go:build !windows

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fspda/cli/setup"
	"fspda/train"
)

// storedFolders returns the folders of what earlier versions stored: TestStoredFingerprints of
// train/config says which.
func storedFolders(t *testing.T) []string {
	t.Helper()
	folder, err := filepath.Abs("../train/config/testdata/stored")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder) // where wan.yaml and init.safetensors lie
	lists, err := filepath.Glob("*/fingerprints.json")
	if err != nil || len(lists) < 2 {
		t.Fatalf("%d versions, %v", len(lists), err)
	}
	for i, list := range lists {
		lists[i] = filepath.Dir(list)
	}
	return lists
}

// Configurations that earlier versions stored resolve to themselves, so that their runs resume.
func TestStoredConfigurationsResolve(t *testing.T) {
	for _, folder := range storedFolders(t) {
		files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
		if err != nil || len(files) < 20 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := train.Default()
			if err := c.Parse(file, text); err != nil {
				t.Fatal(err)
			}
			dev, err := setup.OpenDevice(c, 1)
			if err != nil {
				t.Fatal(err)
			}
			s, _, err := setup.Prepare(c, dev)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			again := s.Config.Stored()
			if diff := again.Differences(c); len(diff) > 0 || again.Fingerprint() != c.Fingerprint() {
				t.Errorf("%s resolves to another configuration: %v", file, diff)
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A run that an earlier version left unfinished goes on, and ends with the models and the last row
// of a run of this version. Earlier rows may lack columns.
func TestStoredRunsResume(t *testing.T) {
	for _, version := range storedFolders(t) {
		dir := t.TempDir()
		resumed, anew := filepath.Join(dir, "resumed"), filepath.Join(dir, "anew")
		if err := os.CopyFS(resumed, os.DirFS(filepath.Join(version, "run"))); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--resume", "--out", resumed},
			{"-c", filepath.Join(resumed, "config.yaml"), "--out", anew}} {
			args = append([]string{"train", "--quiet", "--gradient-time", "0"}, args...)
			if status, _, stderr := call(t, args...); status != 0 {
				t.Fatalf("%s: %q: status %d\n%s", version, args, status, stderr)
			}
		}
		if ending(t, resumed) != ending(t, anew) {
			t.Errorf("the run of %s resumes to another result", version)
		}
	}
}

// ending returns what a run has computed at its end: its last row, and the vectors of its last
// checkpoint.
func ending(t *testing.T, dir string) string {
	t.Helper()
	all := string(trained(t, dir))
	return all[strings.LastIndex(strings.TrimSuffix(metricRows(t, dir), "\n"), "\n")+1:]
}
