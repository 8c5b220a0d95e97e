//go:build !unix

package command

import (
	"context"
	"os/exec"
)

// SetProcessGroup does nothing: this system has no process groups.
func SetProcessGroup(*exec.Cmd) {}

// Niceness returns 0: this system has no nice.
func Niceness() int { return 0 }

// UntilUSR1 returns ctx: this system has no SIGUSR1.
func UntilUSR1(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
