//go:build !windows

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/train/runfolder"
)

// Every signal that asks a program to end leaves a checkpoint, also where the reader of its output
// ends just after it, as a terminal that is closed and tee do. A second SIGHUP changes nothing.
func TestSignalsLeaveACheckpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for name, signals := range map[string][]syscall.Signal{"SIGINT": {syscall.SIGINT}, "SIGTERM": {syscall.SIGTERM},
		"SIGHUP": {syscall.SIGHUP}, "twice SIGHUP": {syscall.SIGHUP, syscall.SIGHUP}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			if slices.Contains(signals, syscall.SIGHUP) && signal.Ignored(syscall.SIGHUP) {
				t.Skip("this process ignores SIGHUP, as under nohup")
			}
			dir := filepath.Join(t.TempDir(), "run")
			cmd, output := startLong(t, dir)
			for _, s := range signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
			awaitStopping(cmd.Process.Pid) // before the signal has arrived, a write would end the program
			output.Close()
			if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != command.ExitStopped {
				t.Fatalf("the program ended with %v", cmd.ProcessState)
			}
			if runfolder.LatestIteration(dir) == 0 {
				t.Error("no checkpoint")
			}
		})
	}
}

// awaitStopping waits until a program ignores SIGPIPE, as it does from a signal on, or has ended. It
// waits for a second where there is no /proc.
func awaitStopping(pid int) {
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			time.Sleep(time.Second)
			return
		}
		_, mask, _ := strings.Cut(string(status), "SigIgn:\t")
		mask, _, _ = strings.Cut(mask, "\n")
		ignored, err := strconv.ParseUint(mask, 16, 64)
		if err != nil || ignored>>(syscall.SIGPIPE-1)&1 == 1 || strings.Contains(string(status), "State:\tZ") {
			return
		}
	}
}

// Under nohup a program goes on when its terminal is closed.
func TestNohup(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel() // it mostly waits
	dir := filepath.Join(t.TempDir(), "run")
	cmd, output := startLong(t, dir, "sh", "-c", `trap "" HUP; exec "$0" "$@"`)
	go func() { _, _ = io.Copy(io.Discard, output) }()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	rows := metricRows(t, dir)
	for range 500 {
		if time.Sleep(20 * time.Millisecond); metricRows(t, dir) != rows {
			break
		}
	}
	if metricRows(t, dir) == rows {
		t.Error("no row after SIGHUP")
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != command.ExitStopped {
		t.Fatalf("the program ended with %v", cmd.ProcessState)
	}
}

// startLong starts a long run, by a command before the program's, and returns once it trains.
func startLong(t *testing.T, dir string, before ...string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	args := slices.Concat(before, []string{os.Args[0]}, quick("--iterations", "4000000", "--eval-points", "40000",
		"--out", dir))
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "FSPDA_TEST_AS_PROGRAM=1")
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var said bytes.Buffer
	for b := make([]byte, 1<<16); !strings.Contains(said.String(), "evaluation"); {
		n, err := output.Read(b)
		if said.Write(b[:n]); err != nil {
			t.Fatalf("%v\n%s", err, said.String())
		}
	}
	return cmd, output
}
