//go:build unix

package command

import (
	"context"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// SetProcessGroup starts a child in a process group of its own, so that Ctrl-C in a terminal does
// not reach it. The parent stops it by closing its standard input: see UntilEOF.
func SetProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Niceness returns the priority of this process as nice counts it, -20 to 19, or 0 if the system
// does not tell.
func Niceness() int {
	n, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	switch {
	case err != nil:
		return 0
	case runtime.GOOS == "linux": // its system call returns 40 to 1
		return 20 - n
	}
	return n
}

// UntilUSR1 returns a context that also ends at SIGUSR1, which batch systems send shortly before
// the time limit of a job.
func UntilUSR1(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGUSR1)
}
