package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Large requests pages of 2 MB for the whole pages in buf, which must be unused: the size of a page
// is fixed at its first write. A system may ignore the request, so there is no error.
func Large[T any](buf []T) {
	if b := whole(buf); b != nil {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
}

// Zeros requests huge pages for the whole pages in buf, which must contain only zeros, as from
// make, and no pointers. Memory from make may have been used before, in small pages: it is returned
// to the system, which replaces it by zero pages.
func Zeros[T any](buf []T) {
	if b := whole(buf); b != nil && unix.Madvise(b, unix.MADV_HUGEPAGE) == nil {
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
	}
}

// whole returns the bytes of the whole pages in buf.
func whole[T any](buf []T) []byte {
	page := uintptr(unix.Getpagesize())
	begin := unsafe.Pointer(unsafe.SliceData(buf))
	skip := -uintptr(begin) % page
	size := uintptr(len(buf)) * unsafe.Sizeof(*new(T))
	if size < skip+page {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(begin, skip)), (size-skip)&^(page-1))
}
