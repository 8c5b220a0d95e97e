package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Large asks for pages of 2 MB for the whole pages of buf, which has to be fresh: once a page is written it is as it is. A system that
// refuses leaves small pages, so there is no error to look at.
func Large[T any](buf []T) {
	page := uintptr(unix.Getpagesize())
	begin := unsafe.Pointer(unsafe.SliceData(buf))
	skip := -uintptr(begin) % page
	size := uintptr(len(buf)) * unsafe.Sizeof(*new(T))
	if size < skip+page {
		return
	}
	whole := (size - skip) &^ (page - 1)
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Add(begin, skip)), whole), unix.MADV_HUGEPAGE)
}
