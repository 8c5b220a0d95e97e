//go:build unix

package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/data"
	"fspda/train/safetensors"
)

// Named pipes and devices are refused as input files before they are opened: opening a pipe waits for
// a writer, and reading a device need not end.
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
