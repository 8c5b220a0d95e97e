package sharedmem

import (
	"os"

	"golang.org/x/sys/unix"
)

// open makes a file and removes its name.
func open() (*os.File, error) {
	f, err := os.CreateTemp("", "fspda")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// zero frees the pages of a region, which then holds zeros.
func zero(fd int, r Region) error {
	return unix.FcntlFstore(uintptr(fd), unix.F_PUNCHHOLE, &unix.Fstore_t{Offset: r.Offset, Length: r.Bytes})
}
