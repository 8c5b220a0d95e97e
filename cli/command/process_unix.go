//go:build unix

package command

import (
	"context"
	"os/exec"
	"os/signal"
	"syscall"
)

// SetProcessGroup starts a child in a process group of its own, so that Ctrl-C in a terminal does
// not reach it. The parent stops it by closing its standard input: see UntilEOF.
func SetProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// UntilUSR1 returns a context that also ends at SIGUSR1, which batch systems send shortly before
// the time limit of a job.
func UntilUSR1(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGUSR1)
}
