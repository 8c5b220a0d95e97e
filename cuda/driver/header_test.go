package driver

import (
	"fmt"
	"testing"
	"unsafe"

	"fspda/cuda/dynlib/headertest"
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

// The Go declarations of all functions match NVIDIA's header.
func TestHeader(t *testing.T) {
	for _, major := range []int{12, 13} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			headertest.Check(t, headertest.Headers(t, major, "cuda.h"), "cuda.h", API{}, hotTypes{})
		})
	}
}
