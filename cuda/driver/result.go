package driver

import (
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"fspda/cuda/dynlib"
)

// Result is the status code that every driver function returns; 0 is success.
type Result int32

// Results that the program distinguishes.
const (
	Success                   Result = 0
	InvalidValue              Result = 1
	OutOfMemory               Result = 2
	NotInitialized            Result = 3
	Deinitialized             Result = 4
	DeviceUnavailable         Result = 46
	NoDevice                  Result = 100
	InvalidContext            Result = 201
	NoBinary                  Result = 209
	ECCUncorrectable          Result = 214
	NVLinkUncorrectable       Result = 220
	Contained                 Result = 226 // CUDA 12.8 and newer: an error of the hardware or of a peer
	NotFound                  Result = 500
	NotReady                  Result = 600
	IllegalAddress            Result = 700
	LaunchOutOfResources      Result = 701
	LaunchTimeout             Result = 702
	PeerAlreadyEnabled        Result = 704
	ContextDestroyed          Result = 709
	Assert                    Result = 710
	HardwareStack             Result = 714
	LaunchFailed              Result = 719
	CooperativeLaunchTooLarge Result = 720
	TensorMemoryLeak          Result = 721
	NotSupported              Result = 801
	SystemMismatch            Result = 803
	MPSClientTerminated       Result = 810
	CaptureUnsupported        Result = 900
	CaptureInvalidated        Result = 901
	ExternalDevice            Result = 911
	Unknown                   Result = 999
)

var resultNames = map[Result]string{
	Success:                   "success",
	InvalidValue:              "invalid value",
	OutOfMemory:               "out of memory",
	NotInitialized:            "not initialized",
	Deinitialized:             "the driver is shutting down",
	DeviceUnavailable:         "the device is busy or unavailable",
	NoDevice:                  "no CUDA-capable device",
	InvalidContext:            "invalid context",
	NoBinary:                  "no kernel image for this device",
	ECCUncorrectable:          "uncorrectable memory error",
	NotFound:                  "not found",
	NotReady:                  "not ready",
	IllegalAddress:            "an illegal memory access",
	LaunchOutOfResources:      "the launch needs more registers or shared memory than there are",
	LaunchTimeout:             "a kernel ran too long",
	Assert:                    "an assertion in a kernel failed",
	LaunchFailed:              "a kernel failed",
	CooperativeLaunchTooLarge: "the cooperative launch has more blocks than fit on the device",
	NotSupported:              "not supported",
	SystemMismatch:            "the driver library and the kernel module have different versions",
	Unknown:                   "unknown error",
	CaptureUnsupported:        "not permitted during stream capture",
	CaptureInvalidated:        "the stream capture was invalidated",
}

// Error is a failed driver call.
type Error struct {
	What   string // the attempt: "copying 4096 bytes to the device"
	Call   string // the function of the driver
	Result Result
	Text   string // the driver's message
}

func (e *Error) Error() string {
	text := cmp.Or(e.Text, e.Result.String())
	return fmt.Sprintf("cuda: %s: %s: %s (%d)", e.What, e.Call, text, int32(e.Result))
}

// String describes the results that the program distinguishes, and returns "failed" for others.
func (r Result) String() string {
	if s := resultNames[r]; s != "" {
		return s
	}
	return "failed"
}

// Sticky reports whether a result invalidates the context: every later call in the process fails
// and the contents of device memory are lost.
func (r Result) Sticky() bool {
	switch r {
	case Deinitialized, DeviceUnavailable, InvalidContext, ECCUncorrectable, NVLinkUncorrectable, Contained,
		IllegalAddress, LaunchTimeout, ContextDestroyed, Assert, LaunchFailed, TensorMemoryLeak, MPSClientTerminated,
		ExternalDevice, Unknown:
		return true
	}
	// errors of the hardware stack, instruction, alignment, address space, program counter
	return r >= HardwareStack && r < LaunchFailed
}

// Lost reports whether an error means that the device is lost.
func Lost(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Result.Sticky()
}

// IsOutOfMemory reports whether an error means that device memory is exhausted.
func IsOutOfMemory(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Result == OutOfMemory
}

// Check returns nil for Success, and else an *Error with the call and a description of the attempt.
func (a *API) Check(r Result, call, what string, args ...any) error {
	if r == Success {
		return nil
	}
	return &Error{What: fmt.Sprintf(what, args...), Call: call, Result: r, Text: a.describe(r)}
}

// describe returns the driver's name and message for a result.
func (a *API) describe(r Result) string {
	var name, text *byte
	if a.GetErrorName == nil || a.GetErrorName(r, &name) != Success || name == nil {
		return r.String()
	}
	s := dynlib.String(uintptr(unsafe.Pointer(name)))
	if a.GetErrorString(r, &text) == Success && text != nil {
		s += ", " + dynlib.String(uintptr(unsafe.Pointer(text)))
	}
	return s
}
