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
