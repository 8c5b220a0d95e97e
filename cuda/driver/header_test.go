package driver

import (
	"fmt"
	"testing"
	"unsafe"

	"fspda/internal/testing/headertest"
)

// hotTypes declares the functions of HotAPI as the driver does. HotAPI passes the launch geometry
// in arrays.
type hotTypes struct {
	LaunchKernel func(f Function, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32, s Stream, args,
		extra *unsafe.Pointer) Result `sym:"cuLaunchKernel"`
	Cooperative func(f Function, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32, s Stream,
		args *unsafe.Pointer) Result `sym:"cuLaunchCooperativeKernel"`
	MemcpyHtoD  func(dst Pointer, src unsafe.Pointer, n uintptr, s Stream) Result `sym:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoH  func(dst unsafe.Pointer, src Pointer, n uintptr, s Stream) Result `sym:"cuMemcpyDtoHAsync_v2"`
	MemcpyDtoD  func(dst, src Pointer, n uintptr, s Stream) Result                `sym:"cuMemcpyDtoDAsync_v2"`
	MemsetD8    func(dst Pointer, value uint8, n uintptr, s Stream) Result        `sym:"cuMemsetD8Async"`
	EventRecord func(e Event, s Stream) Result                                    `sym:"cuEventRecord"`
	EventQuery  func(e Event) Result                                              `sym:"cuEventQuery"`
	StreamWait  func(s Stream, e Event, flags uint32) Result                      `sym:"cuStreamWaitEvent"`
	GraphLaunch func(e GraphExec, s Stream) Result                                `sym:"cuGraphLaunch"`
}

// documented maps the names in NVIDIA's header to our values. Two results are not among them, which
// headers before CUDA 12.8 lack.
var documented = map[string]int{
	"CU_DEVICE_ATTRIBUTE_CLOCK_RATE":                        int(ClockRate),
	"CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT":              int(Multiprocessors),
	"CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE":                     int(L2Bytes),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR":          int(CapabilityMajor),
	"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR":          int(CapabilityMinor),
	"CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH":                int(CooperativeLaunch),
	"CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": int(SharedPerBlock),

	"CU_STREAM_NON_BLOCKING":                          StreamNonBlocking,
	"CU_EVENT_DISABLE_TIMING":                         EventDisableTiming,
	"CU_MEMHOSTALLOC_PORTABLE":                        HostPortable,
	"CU_STREAM_CAPTURE_MODE_THREAD_LOCAL":             CaptureThreadLocal,
	"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": MaxDynamicShared,

	"CUDA_SUCCESS":                            int(Success),
	"CUDA_ERROR_INVALID_VALUE":                int(InvalidValue),
	"CUDA_ERROR_OUT_OF_MEMORY":                int(OutOfMemory),
	"CUDA_ERROR_NOT_INITIALIZED":              int(NotInitialized),
	"CUDA_ERROR_DEINITIALIZED":                int(Deinitialized),
	"CUDA_ERROR_DEVICE_UNAVAILABLE":           int(DeviceUnavailable),
	"CUDA_ERROR_NO_DEVICE":                    int(NoDevice),
	"CUDA_ERROR_INVALID_CONTEXT":              int(InvalidContext),
	"CUDA_ERROR_NO_BINARY_FOR_GPU":            int(NoBinary),
	"CUDA_ERROR_ECC_UNCORRECTABLE":            int(ECCUncorrectable),
	"CUDA_ERROR_NVLINK_UNCORRECTABLE":         int(NVLinkUncorrectable),
	"CUDA_ERROR_NOT_FOUND":                    int(NotFound),
	"CUDA_ERROR_NOT_READY":                    int(NotReady),
	"CUDA_ERROR_ILLEGAL_ADDRESS":              int(IllegalAddress),
	"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES":      int(LaunchOutOfResources),
	"CUDA_ERROR_LAUNCH_TIMEOUT":               int(LaunchTimeout),
	"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED":  int(PeerAlreadyEnabled),
	"CUDA_ERROR_CONTEXT_IS_DESTROYED":         int(ContextDestroyed),
	"CUDA_ERROR_ASSERT":                       int(Assert),
	"CUDA_ERROR_HARDWARE_STACK_ERROR":         int(HardwareStack),
	"CUDA_ERROR_LAUNCH_FAILED":                int(LaunchFailed),
	"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE": int(CooperativeLaunchTooLarge),
	"CUDA_ERROR_NOT_SUPPORTED":                int(NotSupported),
	"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH":       int(SystemMismatch),
	"CUDA_ERROR_MPS_CLIENT_TERMINATED":        int(MPSClientTerminated),
	"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED":   int(CaptureUnsupported),
	"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED":   int(CaptureInvalidated),
	"CUDA_ERROR_EXTERNAL_DEVICE":              int(ExternalDevice),
	"CUDA_ERROR_UNKNOWN":                      int(Unknown),
}

// The Go declarations of all functions and values match NVIDIA's header.
func TestHeader(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			folders := headertest.Headers(t, major, "cuda.h")
			headertest.Check(t, folders, "cuda.h", API{}, hotTypes{})
			headertest.Values(t, folders, "cuda.h", documented)
		})
	}
}
