//go:build unix

package command

import (
	"context"
	"os/exec"
	"os/signal"
	"syscall"
)

// SetProcessGroup keeps Ctrl-C, which a terminal sends to a whole group of processes, from an agent: it hears
// of it by its leash.
func SetProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// UntilUSR1 returns a context that also ends at SIGUSR1, by which batch systems say that the time of
// a job is almost over.
func UntilUSR1(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGUSR1)
}
