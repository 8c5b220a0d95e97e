//go:build cu

package driver

import (
	"reflect"
	"unsafe"

	"fspda/cuda/dynlib"

	"gorgonia.org/cu"
)

// useCU routes contexts, memory and modules through gorgonia.org/cu, which calls the libcuda that
// the program is linked to. Functions that gorgonia.org/cu lacks (stream capture, pinned memory,
// modules of unknown length) keep their bindings. That package initialises the driver before main,
// and exits the program if there is no GPU.
func useCU(a *API) {
	a.PrimaryCtxRetain = func(out *Context, d Device) Result {
		c, err := cu.Device(d).RetainPrimaryCtx()
		*out = handle[Context](c)
		return resultOf(err)
	}
	a.PrimaryCtxRelease = func(d Device) Result { return resultOf(cu.Device(d).ReleasePrimaryCtx()) }
	a.CtxSetCurrent = func(c Context) Result { return resultOf(cu.SetCurrentContext(handle[cu.CUContext](c))) }

	a.ModuleGetFunction = func(out *Function, m Module, name *byte) Result {
		f, err := handle[cu.Module](m).Function(dynlib.String(uintptr(unsafe.Pointer(name))))
		*out = handle[Function](f)
		return resultOf(err)
	}
	a.ModuleUnload = func(m Module) Result { return resultOf(handle[cu.Module](m).Unload()) }

	a.MemAlloc = func(out *Pointer, n uintptr) Result {
		p, err := cu.MemAlloc(int64(n))
		*out = Pointer(p)
		return resultOf(err)
	}
	a.MemFree = func(p Pointer) Result { return resultOf(cu.MemFree(cu.DevicePtr(p))) }
	a.MemGetInfo = func(free, total *uintptr) Result {
		f, t, err := cu.MemInfo()
		*free, *total = uintptr(f), uintptr(t)
		return resultOf(err)
	}
	a.MemFreeHost = func(p unsafe.Pointer) Result { return resultOf(cu.MemFreeHost(p)) }
	a.MemcpyPeer = func(dst Pointer, to Context, src Pointer, from Context, n uintptr, s Stream) Result {
		return resultOf(cu.MemcpyPeerAsync(cu.DevicePtr(dst), handle[cu.CUContext](to), cu.DevicePtr(src),
			handle[cu.CUContext](from), int64(n), handle[cu.Stream](s)))
	}
}

// useCUHot does the same for the hot functions.
func useCUHot(h *HotAPI) {
	h.LaunchKernel = func(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) Result {
		return resultOf(handle[cu.Function](f).Launch(int(grid[0]), int(grid[1]), int(grid[2]), int(block[0]),
			int(block[1]), int(block[2]), int(shared), handle[cu.Stream](s), args))
	}
	h.MemcpyHtoD = func(dst Pointer, src unsafe.Pointer, n uintptr, s Stream) Result {
		return resultOf(cu.MemcpyHtoDAsync(cu.DevicePtr(dst), src, int64(n), handle[cu.Stream](s)))
	}
	h.MemcpyDtoH = func(dst unsafe.Pointer, src Pointer, n uintptr, s Stream) Result {
		return resultOf(cu.MemcpyDtoHAsync(dst, cu.DevicePtr(src), int64(n), handle[cu.Stream](s)))
	}
	h.MemcpyDtoD = func(dst, src Pointer, n uintptr, s Stream) Result {
		return resultOf(cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(n), handle[cu.Stream](s)))
	}
	h.MemsetD8 = func(dst Pointer, value uint8, n uintptr, s Stream) Result {
		return resultOf(cu.MemsetD8Async(cu.DevicePtr(dst), value, int64(n), handle[cu.Stream](s)))
	}
}

// handle converts a handle to another handle type. All of them are one C pointer.
func handle[To, From any](h From) To {
	if unsafe.Sizeof(h) != unsafe.Sizeof(*new(To)) {
		panic("driver: gorgonia.org/cu has handles of a different size")
	}
	return *(*To)(unsafe.Pointer(&h))
}

// resultOf returns the result code of an error of gorgonia.org/cu, whose error type is not
// exported.
func resultOf(err error) Result {
	if err == nil {
		return Success
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return Result(v.Int())
	}
	return Unknown
}
