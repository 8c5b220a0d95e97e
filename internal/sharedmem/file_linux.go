package sharedmem

import (
	"os"

	"golang.org/x/sys/unix"
)

func open() (*os.File, error) {
	fd, err := unix.MemfdCreate("fspda", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "fspda"), nil
}

// zero frees the pages of a region, which then holds zeros.
func zero(fd int, r Region) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, r.Offset, r.Bytes)
}
