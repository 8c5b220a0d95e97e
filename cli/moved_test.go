//go:build !windows

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fspda/cli/command"
)

// Commands on a run whose data set has moved say how to name its new place, and take it.
func TestMovedData(t *testing.T) {
	for name, kind := range map[string]struct {
		files map[string][]byte
		args  []string
	}{
		"pictures": {map[string][]byte{"train/a/1.png": golden(t), "train/b/2.png": golden(t),
			"val/a/3.png": golden(t), "val/b/4.png": golden(t)}, []string{"--data", "folder", "--crop", "8",
			"--hidden", "4"}},
		"text": {map[string][]byte{"train.txt": []byte(strings.Repeat("a text of some letters\n", 40)),
			"val.txt": []byte(strings.Repeat("some letters\n", 20))}, []string{"--data", "text", "--model",
			"gpt-nano", "--layers", "1", "--heads", "1", "--width", "8", "--block", "8", "--schedule", "constant"}},
	} {
		t.Run(name, func(t *testing.T) {
			old, run := imageTree(t, kind.files), filepath.Join(t.TempDir(), "run")
			args := append([]string{"train", "--data-dir", old, "--agents", "1", "--partition", "shuffled", "--batch",
				"1", "--iterations", "2", "--eval-points", "1", "--quiet", "--out", run}, kind.args...)
			if status, _, stderr := call(t, args...); status != 0 {
				t.Fatal(stderr)
			}
			now := old + "-moved"
			if err := os.Rename(old, now); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"eval", run}, {"train", "--out", run, "--resume", "--iterations", "4"}} {
				status, _, stderr := call(t, args...)
				if status != command.ExitBadInput || !strings.Contains(stderr, old) ||
					!strings.Contains(stderr, "give their place with --data-dir") {
					t.Errorf("%s: exit status %d, %s", args, status, stderr)
				}
				if status, _, stderr := call(t, append(args, "--data-dir", now)...); status != 0 {
					t.Errorf("%s with --data-dir: %s", args, stderr)
				}
			}
		})
	}
}

// Many processes do not begin on the run of one, and one does not go on with that of many: it is
// said before anything is made.
func TestRunOfOneIsNotResumedByMany(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if status, _, stderr := call(t, quick("--out", run, "--quiet")...); status != 0 {
		t.Fatal(stderr)
	}
	before := listing(t, run)
	for _, args := range [][]string{{"up", "--out", run, "--resume"}, {"up", "--out", run, "--resume", "--iterations",
		"80"}, {"agent", "-c", filepath.Join(run, "config.yaml"), "--out", run, "--rank", "1", "--join", "127.0.0.1:1",
		"--insecure"}, {"agent", "-c", filepath.Join(run, "config.yaml"), "--out", run, "--rank", "0", "--join",
		"127.0.0.1:0", "--insecure"}} {
		status, _, stderr := call(t, args...)
		if status != command.ExitBadInput || !strings.Contains(stderr, "go on with fspda train --resume") ||
			strings.Contains(stderr, "started") {
			t.Errorf("%s: exit status %d, %s", args, status, stderr)
		}
		if after := listing(t, run); after != before {
			t.Errorf("%s: the folder has changed from\n%s\nto\n%s", args, before, after)
		}
	}
}

// listing lists the files below a folder.
func listing(t *testing.T, dir string) (paths string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		paths += path + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// A flag that is a key of a file by mistake is named as a flag.
func TestFlagsInFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.yaml")
	for key, flag := range map[string]string{"out": "--out", "resume": "--resume", "dry_run": "--dry-run",
		"dry-run": "--dry-run", "quiet": "--quiet", "json": "--json", "web": "--web", "config": "--config"} {
		if err := os.WriteFile(file, []byte(key+": x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := call(t, quick("-c", file)...)
		if status != command.ExitBadInput || !strings.Contains(stderr, fmt.Sprintf("key %q is no key of files", key)) ||
			!strings.Contains(stderr, "the flag "+flag+"\n") {
			t.Errorf("%s: exit status %d, %s", key, status, stderr)
		}
	}
}

// Addresses and numbers that are none, from flags and from the environment, are bad input.
func TestBadAddresses(t *testing.T) {
	agent := []string{"agent", "--insecure", "--rank", "1", "--agents", "2"}
	for _, bad := range []string{"abc", "localhost:abc", "localhost:99999", "localhost:-1", "[::1", "localhost:1:2"} {
		for _, args := range [][]string{{"--join", bad}, {"--join", "127.0.0.1:1", "--listen", bad}, {"--join",
			"127.0.0.1:1", "--advertise", bad}, {"--join", "127.0.0.1:1", "--direct", bad}, {"--join", "127.0.0.1:1",
			"--metrics-listen", bad}, {"--nats", bad}, {"--peers", bad}} {
			if status, _, stderr := call(t, append(agent, args...)...); status != command.ExitBadInput {
				t.Errorf("%s: exit status %d, %s", args, status, stderr)
			}
		}
		for _, args := range [][]string{quick("--web", bad, "--out", filepath.Join(t.TempDir(), "run")),
			{"web", "--listen", bad}, {"up", "--metrics-listen", bad}} {
			if status, _, stderr := call(t, args...); status != command.ExitBadInput {
				t.Errorf("%s: exit status %d, %s", args, status, stderr)
			}
		}
	}
	for name, bad := range map[string][]string{"MASTER_PORT": {"abc", "-1", "99999", "4700.5"},
		"WORLD_SIZE": {"x", "-1", "1"}, "RANK": {"x", "-1", "2"}} {
		for _, value := range bad {
			for key, v := range map[string]string{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "RANK": "1",
				"WORLD_SIZE": "2", name: value} {
				t.Setenv(key, v)
			}
			if status, _, stderr := call(t, "agent", "--insecure"); status != command.ExitBadInput {
				t.Errorf("%s=%s: exit status %d, %s", name, value, status, stderr)
			}
		}
	}
}

// The forecast of a run of any length is a number.
func TestForecastOfAnyLength(t *testing.T) {
	odd := regexp.MustCompile(`[-−]\d|NaN|Inf|–`)
	for _, more := range [][]string{{"--iterations", "1"}, {"--iterations", "1000000000000"},
		{"--iterations", "9223372036854775807"},
		{"--iterations", "9223372036854775807", "--eval-points", "9223372036854775807"}} {
		status, stdout, stderr := call(t, append(quick("--dry-run"), more...)...)
		at := strings.Index(stdout, " iterations in ")
		if status != 0 || at < 0 || odd.MatchString(stdout[at:]) {
			t.Errorf("%s: exit status %d\n%s%s", more, status, stdout, stderr)
		}
		if strings.Contains(more[1], "9223372036854775807") && !strings.Contains(stdout, "more than 292 years") {
			t.Errorf("%s:\n%s", more, stdout)
		}
	}
}
