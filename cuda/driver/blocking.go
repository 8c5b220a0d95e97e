package driver

import "unsafe"

// LaunchBlockingVariable is NVIDIA's environment variable: 1 makes launches wait for the GPU.
const LaunchBlockingVariable = "CUDA_LAUNCH_BLOCKING"

// BlockLaunches returns an API whose launches wait until the GPU has completed them, so that the
// error of a kernel is returned by its own launch, and not by a later call. It has no cooperative
// launches, and is not to be used with graphs.
func BlockLaunches(a *API) *API {
	b := *a
	b.LaunchKernel = func(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) Result {
		if r := a.LaunchKernel(f, grid, block, shared, s, args); r != Success {
			return r
		}
		return a.StreamSynchronize(s)
	}
	b.LaunchCooperative, b.Blocking = nil, true
	return &b
}
