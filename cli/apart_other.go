//go:build !unix

package cli

import (
	"context"
	"os/exec"
)

// apart does nothing where there are no groups of processes.
func apart(*exec.Cmd) {}

// noticed adds nothing where no signal says that time is almost over.
func noticed(ctx context.Context) (context.Context, func()) { return ctx, func() {} }
