package dynlib

import "unsafe"

// String returns the text that lies at an address of C memory and ends with a zero byte.
func String(address uintptr) string {
	var b []byte
	for ; address != 0; address++ {
		c := *(*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address)))
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}
