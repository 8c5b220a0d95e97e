package driver

import "unsafe"

// These types are handles of the driver.
type (
	Device    int32 // an ordinal, from 0
	Context   uintptr
	Module    uintptr
	Function  uintptr
	Stream    uintptr // 0: the default stream
	Event     uintptr
	Graph     uintptr
	GraphExec uintptr
	Pointer   uint64 // an address in device memory
)

// API is the table of the driver functions that this program calls, grouped by topic. Names are
// the driver's names without "cu". The tags name the versions whose arguments are declared here.
// Parameters named dst or out are written. Sizes are in bytes.
type API struct {
	DeviceAPI
	ContextAPI
	ModuleAPI
	MemoryAPI
	StreamAPI
	GraphAPI
	HotAPI
	Blocking bool // launches wait for the GPU: see BlockLaunches
}

// DeviceAPI initialises the driver and describes the devices.
type DeviceAPI struct {
	Init             func(flags uint32) Result                      `sym:"cuInit"`
	DriverGetVersion func(out *int32) Result                        `sym:"cuDriverGetVersion"` // 1000·major + 10·minor
	GetErrorName     func(r Result, out **byte) Result              `sym:"cuGetErrorName"`
	GetErrorString   func(r Result, out **byte) Result              `sym:"cuGetErrorString"`
	DeviceGetCount   func(out *int32) Result                        `sym:"cuDeviceGetCount"`
	DeviceGet        func(out *Device, ordinal int32) Result        `sym:"cuDeviceGet"`
	DeviceGetName    func(out *byte, length int32, d Device) Result `sym:"cuDeviceGetName"`
	DeviceTotalMem   func(out *uintptr, d Device) Result            `sym:"cuDeviceTotalMem_v2"`
	DeviceGetAttr    func(out *int32, a Attribute, d Device) Result `sym:"cuDeviceGetAttribute"`
	DeviceCanAccess  func(out *int32, d, peer Device) Result        `sym:"cuDeviceCanAccessPeer"`
}

// ContextAPI manages the primary contexts.
type ContextAPI struct {
	PrimaryCtxRetain  func(out *Context, d Device) Result     `sym:"cuDevicePrimaryCtxRetain"`
	PrimaryCtxRelease func(d Device) Result                   `sym:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent     func(c Context) Result                  `sym:"cuCtxSetCurrent"`
	CtxEnablePeer     func(peer Context, flags uint32) Result `sym:"cuCtxEnablePeerAccess"`
}

// ModuleAPI loads compiled kernels.
type ModuleAPI struct {
	ModuleLoadData func(out *Module, image unsafe.Pointer, n uint32, options *int32,
		values *unsafe.Pointer) Result `sym:"cuModuleLoadDataEx"`
	ModuleGetFunction func(out *Function, m Module, name *byte) Result `sym:"cuModuleGetFunction"`
	ModuleUnload      func(m Module) Result                            `sym:"cuModuleUnload"`
	FuncSetAttribute  func(f Function, a int32, value int32) Result    `sym:"cuFuncSetAttribute"`
}

// MemoryAPI allocates device memory and pinned host memory, and copies between devices.
type MemoryAPI struct {
	MemAlloc     func(out *Pointer, n uintptr) Result                      `sym:"cuMemAlloc_v2"`
	MemFree      func(p Pointer) Result                                    `sym:"cuMemFree_v2"`
	MemGetInfo   func(free, total *uintptr) Result                         `sym:"cuMemGetInfo_v2"`
	MemHostAlloc func(out *unsafe.Pointer, n uintptr, flags uint32) Result `sym:"cuMemHostAlloc"`
	MemFreeHost  func(p unsafe.Pointer) Result                             `sym:"cuMemFreeHost"`
	MemcpyPeer   func(dst Pointer, to Context, src Pointer, from Context, n uintptr,
		s Stream) Result `sym:"cuMemcpyPeerAsync"`
}

// StreamAPI creates, destroys and waits for streams and events.
type StreamAPI struct {
	StreamCreate      func(out *Stream, flags uint32, priority int32) Result `sym:"cuStreamCreateWithPriority"`
	StreamDestroy     func(s Stream) Result                                  `sym:"cuStreamDestroy_v2"`
	StreamSynchronize func(s Stream) Result                                  `sym:"cuStreamSynchronize"`
	EventCreate       func(out *Event, flags uint32) Result                  `sym:"cuEventCreate"`
	EventDestroy      func(e Event) Result                                   `sym:"cuEventDestroy_v2"`
	EventSynchronize  func(e Event) Result                                   `sym:"cuEventSynchronize"`
	EventElapsedTime  func(out *float32, from, to Event) Result              `sym:"cuEventElapsedTime"` // milliseconds
}

// GraphAPI captures the work of streams in graphs.
type GraphAPI struct {
	StreamBeginCapture func(s Stream, mode int32) Result                  `sym:"cuStreamBeginCapture_v2"`
	StreamEndCapture   func(s Stream, out *Graph) Result                  `sym:"cuStreamEndCapture"`
	GraphInstantiate   func(out *GraphExec, g Graph, flags uint64) Result `sym:"cuGraphInstantiateWithFlags"`
	GraphDestroy       func(g Graph) Result                               `sym:"cuGraphDestroy"`
	GraphExecDestroy   func(e GraphExec) Result                           `sym:"cuGraphExecDestroy"`
}

// HotAPI is the table of the functions that are called many times per iteration. Those that
// [Library.ForThread] returns share one argument array, so that a call does not allocate; they must
// be used by one goroutine only.
type HotAPI struct {
	// LaunchKernel calls cuLaunchKernel. args holds the addresses of the kernel's arguments.
	LaunchKernel func(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) Result
	// LaunchCooperative calls cuLaunchCooperativeKernel; nil if the driver lacks that function.
	LaunchCooperative func(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) Result
	MemcpyHtoD        func(dst Pointer, src unsafe.Pointer, n uintptr, s Stream) Result
	MemcpyDtoH        func(dst unsafe.Pointer, src Pointer, n uintptr, s Stream) Result
	MemcpyDtoD        func(dst, src Pointer, n uintptr, s Stream) Result
	MemsetD8          func(dst Pointer, value uint8, n uintptr, s Stream) Result
	EventRecord       func(e Event, s Stream) Result
	EventQuery        func(e Event) Result
	StreamWaitEvent   func(s Stream, e Event, flags uint32) Result
	GraphLaunch       func(e GraphExec, s Stream) Result
}
