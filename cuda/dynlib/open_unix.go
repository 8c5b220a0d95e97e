//go:build linux && (amd64 || arm64) && !nocuda && !static

package dynlib

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// Supported reports whether this build can open libraries.
const Supported = true

// system opens libraries with dlopen.
type system struct{}

func (system) open(path string, global bool) (uintptr, error) {
	mode := purego.RTLD_NOW | purego.RTLD_LOCAL
	if global {
		mode = purego.RTLD_NOW | purego.RTLD_GLOBAL
	}
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	return purego.Dlopen(path, mode)
}

func (system) symbol(handle uintptr, name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return purego.Dlsym(handle, name)
}

func (system) close(handle uintptr) error { return purego.Dlclose(handle) }

// register makes *function, a Go function variable, call the C function at an address.
func register(function any, address uintptr) { purego.RegisterFunc(function, address) }

// Call calls a C function with up to 32 integers or pointers and returns its result. The caller
// keeps memory alive that args point to. Call does not allocate if the caller reuses the args
// slice.
func Call(address uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(address, args...)
	return r
}
