//go:build !noasm && !fspda_noasm

package isa

import "golang.org/x/sys/unix"

// permitTiles asks Linux for the use of tiles, which it grants to all threads of the process if it
// saves them.
func permitTiles() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
