//go:build unix

package acceptance

import (
	"os/exec"
	"syscall"
)

// ownGroup starts a command in a group of its own, so that all of it can be ended together.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup ends the command and the processes that it has started.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // nobody may be left
