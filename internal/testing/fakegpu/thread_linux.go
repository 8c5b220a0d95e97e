package fakegpu

import "syscall"

// thread returns the number of the calling thread.
func thread() int { return syscall.Gettid() }
