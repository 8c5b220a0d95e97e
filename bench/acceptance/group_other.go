//go:build !unix

package acceptance

import "os/exec"

// ownGroup does nothing where there are no groups of processes.
func ownGroup(*exec.Cmd) {}

// killGroup ends the command.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may be gone
