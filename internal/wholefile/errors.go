package wholefile

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
)

// DiskFull reports whether an error says that a disk is full, or the user's share of it.
func DiskFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	var code syscall.Errno
	// ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL
	return runtime.GOOS == "windows" && errors.As(err, &code) && slices.Contains([]syscall.Errno{39, 112}, code)
}

// LimitHint returns what to do about an error that a limit of the system causes. It returns an empty
// text for other errors.
func LimitHint(err error) string {
	switch {
	case errors.Is(err, syscall.EMFILE):
		return "raise the limit of open files of a process (ulimit -n)"
	case errors.Is(err, syscall.ENFILE):
		return "close other programs: the system has no open files left"
	case errors.Is(err, syscall.EAGAIN):
		return "raise the limit of processes and threads (ulimit -u, or pids.max of the control group)"
	case errors.Is(err, syscall.ENOMEM):
		return "free memory, or take fewer agents"
	case errors.Is(err, syscall.EFBIG):
		return "raise the limit of the size of a file (ulimit -f)"
	case errors.Is(err, syscall.EROFS):
		return "choose a place that is not mounted for reading only"
	}
	return ""
}
