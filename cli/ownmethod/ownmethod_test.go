// Package ownmethod tests that a method is one file and one line: elastic_test.go has the method,
// and TestMain registers it. Everything else follows from the file.
package ownmethod

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fspda/cli"
)

// TestMain registers the method, and lets the test binary act as the program.
func TestMain(m *testing.M) {
	part := cli.Method(method)
	if os.Getenv("FSPDA_TEST_AS_PROGRAM") != "" {
		cli.Main(part)
	}
	part()
	os.Exit(m.Run())
}

// call runs the program in this process.
func call(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = cli.Run(context.Background(), args, &out, &errs)
	return status, out.String(), errs.String()
}

// small returns the arguments of a short run.
func small(command, dir string, more ...string) []string {
	return append([]string{command, "--algo", "elastic", "--data-train", "400", "--data-test", "100", "--hidden", "6",
		"--agents", "3", "--batch", "16", "--iterations", "40", "--eval-points", "4", "--quiet", "--out", dir}, more...)
}

// train runs the method into a folder.
func train(t *testing.T, dir string, more ...string) {
	t.Helper()
	if status, _, stderr := call(small("train", dir, more...)...); status != 0 {
		t.Fatalf("%v: %s", more, stderr)
	}
}

var varying = regexp.MustCompile(`,"(wall_s|wire_bytes|checksum)":[^,}]*`)

// rows returns the metrics of a run but times and bytes sent.
func rows(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return varying.ReplaceAllString(string(text), "")
}

// Help, the table of methods and the list of algorithms name the method with its settings.
func TestHelp(t *testing.T) {
	_, help, _ := call("train", "--algo", "help")
	_, methods, _ := call("methods")
	if help != methods || !strings.Contains(help, "\nelastic\n") {
		t.Error("the help of algo and the command methods do not both have the method")
	}
	for _, want := range []string{"--fade, pull (0.1), start (model)", "a test of one file", "2·v·d·|E_t|",
		"optimizers"} {
		if _, own, _ := strings.Cut(help, "\nelastic\n"); !strings.Contains(own, want) {
			t.Errorf("its help has no %q:\n%s", want, own)
		}
	}
	if _, flags, _ := call("train", "--help", "method"); !strings.Contains(flags, "elastic") ||
		!strings.Contains(flags, "share of the slow copy that is forgotten") {
		t.Error("the help of flags names neither the method nor its key")
	}
}

// A flag, a file with params and a file with a dotted key give the same run, whose configuration
// has all settings; others are refused in words of the declaration.
func TestSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	train(t, "flag", "--param", "pull=0.3,start=zero", "--fade", "0.2")
	for name, text := range map[string]string{"params": "fade: 0.2\nparams: {pull: 0.3, start: zero}\n",
		"dotted": "params.pull: 0.3\nparams.start: zero\nfade: 0.2\n"} {
		if err := os.WriteFile(name+".yaml", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		train(t, name, "--config", name+".yaml")
		if rows(t, name) != rows(t, "flag") {
			t.Errorf("%s: another run than with flags", name)
		}
	}
	train(t, "unfaded", "--param", "pull=0.3,start=zero")
	if rows(t, "unfaded") == rows(t, "flag") {
		t.Error("fade changes nothing")
	}
	train(t, "usual")
	text, err := os.ReadFile(filepath.Join("usual", "config.yaml"))
	if err != nil || !strings.Contains(string(text), "pull: 0.1") || !strings.Contains(string(text), "start: model") {
		t.Errorf("config.yaml lacks the defaults: %v\n%s", err, text)
	}
	if rows(t, "usual") == rows(t, "flag") {
		t.Error("the settings change nothing")
	}
	for args, want := range map[string]string{
		"--param=pull=2":             "params.pull 2: expected a number in [0, 1]: share of the way",
		"--param=start=here":         `"here"`,
		"--param=pul=0.5":            "did you mean pull",
		"--momentum=0.9":             "elastic has no heavy ball",
		"--mask=randk":               "elastic averages whole vectors",
		"--gamma=0.3":                "gamma 0.3: has no effect on this run",
		"--param=pull=0 --gamma=0.3": "gamma 0.3",
		"--fade=1":                   "fade 1: expected a number in [0, 1)",
		"--algo=dsgd --fade=0.5":     "fade 0.5: has no effect on this run: it needs algo elastic",
	} {
		status, _, stderr := call(small("train", "bad", strings.Fields(args)...)...)
		if status != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%s: status %d, %s, want %q", args, status, stderr, want)
		}
	}
}

// An exchange costs the bits that the table of methods says: 2·v·d for each edge.
func TestBits(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	train(t, dir, "--edges", "full", "--graph", "ring")
	lines := strings.Split(strings.TrimSpace(rows(t, dir)), "\n")
	var last struct {
		Bits uint64 `json:"bits_total"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	const d = 784*6 + 6 + 6*10 + 10
	if want := uint64(40 * 3 * 2 * 32 * d); last.Bits != want {
		t.Errorf("%d bits, want %d", last.Bits, want)
	}
}

// A run that was stopped resumes with the same bits, also with other threads.
func TestResume(t *testing.T) {
	t.Chdir(t.TempDir())
	train(t, "whole", "--threads", "2")
	train(t, "part", "--iterations", "20", "--eval-points", "2")
	if status, _, stderr := call("train", "--resume", "--out", "part", "--iterations", "40", "--quiet"); status != 0 {
		t.Fatal(stderr)
	}
	if rows(t, "whole") != rows(t, "part") {
		t.Errorf("resumed it is another run:\n%s\n%s", rows(t, "whole"), rows(t, "part"))
	}
	status, _, stderr := call("train", "--resume", "--out", "part", "--param", "pull=0.2", "--quiet")
	if status == 0 || !strings.Contains(stderr, "pull") {
		t.Errorf("resumed with another setting: status %d, %s", status, stderr)
	}
}

// Three processes have the metrics of one.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Chdir(t.TempDir())
	train(t, "one")
	cmd := exec.Command(os.Args[0], small("up", "many")...)
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%w\n%s", err, out))
	}
	if rows(t, "one") != rows(t, "many") {
		t.Errorf("in processes it is another run:\n%s\n%s", rows(t, "one"), rows(t, "many"))
	}
}
