package driver

import (
	"errors"
	"fmt"
	"unsafe"
)

// Result is what every function of the driver returns: 0 for success.
type Result int32

// Results that are told apart.
const (
	Success            Result = 0
	InvalidValue       Result = 1
	OutOfMemory        Result = 2
	NotInitialized     Result = 3
	Deinitialized      Result = 4
	DeviceUnavailable  Result = 46
	NoDevice           Result = 100
	InvalidContext     Result = 201
	NoBinary           Result = 209
	ECCUncorrectable   Result = 214
	NotFound           Result = 500
	NotReady           Result = 600
	IllegalAddress     Result = 700
	LaunchTimeout      Result = 702
	PeerAlreadyEnabled Result = 704
	Assert             Result = 710
	LaunchFailed       Result = 719
	TooManyTogether    Result = 720
	NotSupported       Result = 801
	SystemMismatch     Result = 803
	CaptureUnsupported Result = 900
	CaptureInvalidated Result = 901
	Unknown            Result = 999
)

var resultNames = map[Result]string{
	InvalidValue: "invalid value", OutOfMemory: "out of memory", NotInitialized: "not initialized", Deinitialized: "the driver is shutting down",
	DeviceUnavailable: "the device is busy or unavailable", NoDevice: "no CUDA-capable device", InvalidContext: "invalid context",
	NoBinary: "no kernel image for this device", ECCUncorrectable: "uncorrectable error of the memory", NotFound: "not found", NotReady: "not ready",
	IllegalAddress: "an illegal memory access", LaunchTimeout: "a kernel ran too long", Assert: "an assertion of a kernel failed",
	LaunchFailed: "a kernel failed", TooManyTogether: "more blocks in a cooperative launch than fit the device", NotSupported: "not supported", SystemMismatch: "the driver's library and its kernel module differ in version", Unknown: "unknown error",
	CaptureUnsupported: "not permitted while a stream is captured", CaptureInvalidated: "the capture was broken off",
}

// Error is a call that failed.
type Error struct {
	What   string // that was tried: "copying 4096 bytes to the device"
	Call   string // the function of the driver
	Result Result
	Text   string // the driver's words
}

func (e *Error) Error() string {
	text := e.Text
	if text == "" {
		text = e.Result.String()
	}
	return fmt.Sprintf("cuda: %s: %s: %s (%d)", e.What, e.Call, text, int32(e.Result))
}

// String says what a result means, for those that are told apart.
func (r Result) String() string {
	if s := resultNames[r]; s != "" {
		return s
	}
	return "failed"
}

// Sticky says that after this result nothing works any more in the process: the context is lost,
// and what its memory held.
func (r Result) Sticky() bool {
	switch r {
	case Deinitialized, DeviceUnavailable, ECCUncorrectable, IllegalAddress, LaunchTimeout, Assert, LaunchFailed, Unknown, InvalidContext:
		return true
	}
	// hardware stack, instruction, alignment, address space, pc
	return r > IllegalAddress && r < 720 && r != PeerAlreadyEnabled && r != 705
}

// Lost tells whether an error says that a device is lost.
func Lost(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Result.Sticky()
}

// IsOutOfMemory tells whether an error says that the memory of a device is used up.
func IsOutOfMemory(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Result == OutOfMemory
}

// Check makes an error of a result that is not Success: what was tried, by which call.
func (a *API) Check(r Result, call, what string, args ...any) error {
	if r == Success {
		return nil
	}
	return &Error{What: fmt.Sprintf(what, args...), Call: call, Result: r, Text: a.describe(r)}
}

// describe asks the driver what a result means.
func (a *API) describe(r Result) string {
	var name, text *byte
	if a.GetErrorName == nil || a.GetErrorName(r, &name) != Success || name == nil {
		return r.String()
	}
	s := goString(name)
	if a.GetErrorString(r, &text) == Success && text != nil {
		s += ", " + goString(text)
	}
	return s
}

// goString copies a text that ends with a zero byte.
func goString(p *byte) string {
	var b []byte
	for *p != 0 {
		b = append(b, *p)
		p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1))
	}
	return string(b)
}
