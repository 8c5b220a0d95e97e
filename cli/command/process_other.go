//go:build !unix

package command

import (
	"context"
	"os/exec"
)

// SetProcessGroup does nothing: this system has no process groups.
func SetProcessGroup(*exec.Cmd) {}

// UntilUSR1 returns ctx: this system has no SIGUSR1.
func UntilUSR1(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
