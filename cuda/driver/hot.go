package driver

import (
	"unsafe"

	"fspda/cuda/dynlib"
)

type hotSymbols struct {
	LaunchKernel      uintptr `sym:"cuLaunchKernel"`
	LaunchCooperative uintptr `sym:"cuLaunchCooperativeKernel,optional"`
	MemcpyHtoD        uintptr `sym:"cuMemcpyHtoDAsync_v2"`
	MemcpyDtoH        uintptr `sym:"cuMemcpyDtoHAsync_v2"`
	MemcpyDtoD        uintptr `sym:"cuMemcpyDtoDAsync_v2"`
	MemsetD8          uintptr `sym:"cuMemsetD8Async"`
	EventRecord       uintptr `sym:"cuEventRecord"`
	EventQuery        uintptr `sym:"cuEventQuery"`
	StreamWaitEvent   uintptr `sym:"cuStreamWaitEvent"`
	GraphLaunch       uintptr `sym:"cuGraphLaunch"`
}

// functions returns hot functions that share one argument array. Only one goroutine may use them.
func (at *hotSymbols) functions() HotAPI {
	c := &caller{}
	h := HotAPI{
		LaunchKernel: func(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) Result {
			c.launch(f, grid, block, shared, s, args)
			return c.call(at.LaunchKernel, 11)
		},
		MemcpyHtoD: func(dst Pointer, src unsafe.Pointer, n uintptr, s Stream) Result {
			return c.call4(at.MemcpyHtoD, uintptr(dst), uintptr(src), n, uintptr(s))
		},
		MemcpyDtoH: func(dst unsafe.Pointer, src Pointer, n uintptr, s Stream) Result {
			return c.call4(at.MemcpyDtoH, uintptr(dst), uintptr(src), n, uintptr(s))
		},
		MemcpyDtoD: func(dst, src Pointer, n uintptr, s Stream) Result {
			return c.call4(at.MemcpyDtoD, uintptr(dst), uintptr(src), n, uintptr(s))
		},
		MemsetD8: func(dst Pointer, value uint8, n uintptr, s Stream) Result {
			return c.call4(at.MemsetD8, uintptr(dst), uintptr(value), n, uintptr(s))
		},
		EventRecord: func(e Event, s Stream) Result { return c.call4(at.EventRecord, uintptr(e), uintptr(s), 0, 0) },
		EventQuery:  func(e Event) Result { return c.call4(at.EventQuery, uintptr(e), 0, 0, 0) },
		StreamWaitEvent: func(s Stream, e Event, flags uint32) Result {
			return c.call4(at.StreamWaitEvent, uintptr(s), uintptr(e), uintptr(flags), 0)
		},
		GraphLaunch: func(e GraphExec, s Stream) Result {
			return c.call4(at.GraphLaunch, uintptr(e), uintptr(s), 0, 0)
		},
	}
	if at.LaunchCooperative != 0 {
		h.LaunchCooperative = func(f Function, grid, block [3]uint32, shared uint32, s Stream,
			args []unsafe.Pointer) Result {
			c.launch(f, grid, block, shared, s, args)
			return c.call(at.LaunchCooperative, 10)
		}
	}
	return h
}

// caller holds the arguments of a call, so that calls do not allocate.
type caller struct{ args [11]uintptr }

// launch stores the arguments of a launch. The last one, extra, stays null.
func (c *caller) launch(f Function, grid, block [3]uint32, shared uint32, s Stream, args []unsafe.Pointer) {
	c.args = [11]uintptr{uintptr(f), uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(block[0]),
		uintptr(block[1]),
		uintptr(block[2]), uintptr(shared), uintptr(s), uintptr(unsafe.Pointer(unsafe.SliceData(args)))}
}

func (c *caller) call(function uintptr, n int) Result {
	return Result(int32(dynlib.Call(function, c.args[:n]...)))
}

func (c *caller) call4(function, a, b, d, e uintptr) Result {
	c.args[0], c.args[1], c.args[2], c.args[3] = a, b, d, e
	return c.call(function, 4)
}
