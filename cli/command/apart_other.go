//go:build !unix

package command

import (
	"context"
	"os/exec"
)

// SetProcessGroup does nothing where there are no groups of processes.
func SetProcessGroup(*exec.Cmd) {}

// UntilUSR1 adds nothing where no signal says that time is almost over.
func UntilUSR1(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
