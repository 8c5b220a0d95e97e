package driver

import "unsafe"

// Synchronous returns an API whose launches wait until the GPU has completed them, so that the error
// of a kernel is that of its own launch, and not of a later call. It has neither cooperative
// launches nor graphs.
func Synchronous(a *API) *API {
	b := *a
	b.LaunchKernel = func(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) Result {
		if r := a.LaunchKernel(f, grid, block, shared, s, args); r != Success {
			return r
		}
		return a.StreamSynchronize(s)
	}
	b.LaunchCooperative, b.GraphLaunch = nil, nil
	return &b
}
