//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart keeps Ctrl-C, which a terminal sends to a whole group of processes, from an agent: it hears of it by its leash.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
