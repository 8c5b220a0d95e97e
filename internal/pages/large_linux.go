package pages

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Large asks for pages of 2 MB for the whole pages of buf, which has to be fresh: once a page is
// written it is as it is. A system that refuses leaves small pages, so there is no error to look
// at.
func Large[T any](buf []T) {
	if b := whole(buf); b != nil {
		_ = unix.Madvise(b, unix.MADV_HUGEPAGE)
	}
}

// Zeros asks for large pages for the whole pages of buf, which holds nothing but zeros, as from
// make, and no pointers. What make returns may have been in use before, in small pages: they are
// given back, and what comes in their place is zero, too.
func Zeros[T any](buf []T) {
	if b := whole(buf); b != nil && unix.Madvise(b, unix.MADV_HUGEPAGE) == nil {
		_ = unix.Madvise(b, unix.MADV_DONTNEED)
	}
}

// whole is the bytes of the whole pages of buf.
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
