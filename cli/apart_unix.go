//go:build unix

package cli

import (
	"context"
	"os/exec"
	"os/signal"
	"syscall"
)

// apart keeps Ctrl-C, which a terminal sends to a whole group of processes, from an agent: it hears
// of it by its leash.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// noticed returns a context that also ends at SIGUSR1, by which batch systems say that the time of
// a job is almost over.
func noticed(ctx context.Context) (context.Context, func()) {
	return signal.NotifyContext(ctx, syscall.SIGUSR1)
}
