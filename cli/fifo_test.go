//go:build unix

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/data"
	"fspda/data/images"
	"fspda/data/images/packed"
	"fspda/dist/link"
	"fspda/train/safetensors"
)

// Named pipes and devices are refused as input files before they are opened: opening a pipe waits
// for a writer, and reading a device need not end.
func TestInputMustBeAFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("skipped: no named pipes here: %v", err)
	}
	command := func(args ...string) func(string) string {
		return func(path string) string {
			_, _, stderr := call(t, append(args, path)...)
			return stderr
		}
	}
	for name, open := range map[string]func(path string) string{
		"configuration": command("train", "-c"),
		"queue":         command("queue"),
		"split": func(path string) string {
			_, err := data.File{Path: path}.Split([]int32{0, 1}, 2, 2, 1)
			return err.Error()
		},
		"graph": func(path string) string {
			_, _, stderr := call(t, "train", "--graph", "file("+path+")")
			return stderr
		},
		"edges": func(path string) string {
			_, _, stderr := call(t, "train", "--edges", "trace("+path+")")
			return stderr
		},
		"manifest": func(path string) string {
			dir := t.TempDir()
			if err := os.Symlink(path, filepath.Join(dir, "manifest.json")); err != nil {
				return err.Error()
			}
			_, err := packed.ReadManifest(dir)
			return err.Error()
		},
		"authority of certificates": func(path string) string {
			dir := t.TempDir()
			if _, _, stderr := call(t, "certs", "--out", dir, "--run", "pipes", "-n", "2"); stderr != "" {
				return stderr
			}
			authority := filepath.Join(dir, "ca.pem")
			if err := errors.Join(os.Remove(authority), os.Symlink(path, authority)); err != nil {
				return err.Error()
			}
			_, err := link.ReadCredentials(dir, "pipes", 0)
			return err.Error()
		},
		"picture": func(path string) string {
			dir := t.TempDir()
			for _, class := range []string{"cat", "dog"} {
				if err := errors.Join(os.Mkdir(filepath.Join(dir, class), 0o755),
					os.Symlink(path, filepath.Join(dir, class, "x.png"))); err != nil {
					return err.Error()
				}
			}
			s, err := images.Open(dir, images.Options{})
			if err == nil {
				err = s.Train.Image(new(images.RGB), 0)
			}
			return err.Error()
		},
		"IDX": func(path string) string {
			_, err := data.ReadIDX(path)
			return err.Error()
		},
		"safetensors": func(path string) string {
			_, err := safetensors.Open(path)
			return err.Error()
		},
	} {
		for _, path := range []string{pipe, "/dev/zero"} {
			said := make(chan string, 1)
			go func() { said <- open(path) }()
			select {
			case text := <-said:
				if !strings.Contains(text, "not a regular file") {
					t.Errorf("%s %s: %s", name, path, text)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s %s: was opened", name, path)
			}
		}
	}
}
