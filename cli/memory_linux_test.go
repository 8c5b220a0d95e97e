package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The most memory that a run of a language model takes, as the system counts it, is at most 2 %
// above the forecast, and at most 10 % below: a small run does not need all of it.
func TestMemoryOfLanguageModels(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("skipped: a minute long; set FSPDA_LONG=1")
	}
	for _, extra := range []string{"--agents 4", "--agents 4 --algo dsgd", "--agents 2 --model llama-nano",
		"--agents 1 --algo sgd"} {
		args := strings.Fields("train --data synthetic-text --model gpt-nano --iterations 12 --warmup-iterations 5 " +
			"--eval-points 1 --metrics test --eval-test 300 --threads 2 " + extra)
		cmd := exec.Command(os.Args[0], append(args, "--out", filepath.Join(t.TempDir(), "run"))...)
		cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		found := regexp.MustCompile(`(\d+) MB of memory`).FindSubmatch(out)
		if found == nil {
			t.Fatalf("no forecast in\n%s", out)
		}
		forecast, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		most := float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024 / 1e6
		t.Logf("%s: %.0f MB, forecast %.0f MB", extra, most, forecast)
		if most > 1.02*forecast || most < 0.9*forecast {
			t.Errorf("%s: %.0f MB, forecast %.0f MB", extra, most, forecast)
		}
	}
}
