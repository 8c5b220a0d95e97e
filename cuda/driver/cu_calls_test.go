//go:build cu

package driver

import (
	"testing"
	"unsafe"

	"fspda/cuda/dynlib"
)

// The calls routed through gorgonia.org/cu reach the driver with their arguments, and its results
// come back.
func TestThroughCU(t *testing.T) {
	l, err := Open(dynlib.System())
	if err != nil {
		t.Fatal(err)
	}
	a := l.ForThread()
	const stream = Stream(0xa0)
	ok := func(r Result, what string) {
		t.Helper()
		if r != Success {
			t.Errorf("%s: %v (%d)", what, r, r)
		}
	}
	var c Context
	ok(a.PrimaryCtxRetain(&c, 1), "context")
	ok(a.CtxSetCurrent(c), "current")
	if r := a.CtxSetCurrent(c + 1); r != InvalidContext {
		t.Errorf("another context: %v", r)
	}
	var at, to Pointer
	ok(a.MemAlloc(&at, 64), "memory")
	ok(a.MemAlloc(&to, 64), "memory")
	if r := a.MemAlloc(new(Pointer), 1<<30); r != OutOfMemory {
		t.Errorf("too much memory: %v", r)
	}
	var free, total uintptr
	if ok(a.MemGetInfo(&free, &total), "info"); free != 5 || total != 6 {
		t.Errorf("%d of %d bytes are free", free, total)
	}
	sent, got := new([8]byte), new([8]byte)
	*sent = [8]byte{1, 2, 3, 4, 5, 6, 7, 8}
	ok(a.MemcpyHtoD(at, unsafe.Pointer(sent), 8, stream), "to the device")
	ok(a.MemsetD8(at+4, 9, 2, stream), "set")
	ok(a.MemcpyDtoD(to, at, 8, stream), "within the device")
	ok(a.MemcpyDtoH(unsafe.Pointer(got), to, 8, stream), "from the device")
	if *got != [8]byte{1, 2, 3, 4, 9, 9, 7, 8} {
		t.Errorf("%v came back", got)
	}
	var f Function
	name := []byte("k\x00")
	ok(a.ModuleGetFunction(&f, 0x80, &name[0]), "function")
	if r := a.ModuleGetFunction(new(Function), 0x81, &name[0]); r != NotFound {
		t.Errorf("another module: %v", r)
	}
	slots := &[2]uint64{uint64(at), 14}
	ok(a.LaunchKernel(f, [3]uint32{3, 1, 1}, [3]uint32{4, 5, 6}, 7, stream, []unsafe.Pointer{unsafe.Pointer(&slots[0]),
		unsafe.Pointer(&slots[1])}), "launch")
	ok(a.MemcpyDtoH(unsafe.Pointer(got), at, 8, stream), "from the device")
	if got[0] != 42 {
		t.Errorf("the kernel wrote %v", got)
	}
	ok(a.MemFree(at), "free")
	ok(a.MemFree(to), "free")
}
