package driver

import (
	"errors"
	"fmt"
	"unsafe"

	"fspda/cuda/dynlib"
)

// ErrNoDevice reports that the driver is installed but finds no GPU.
var ErrNoDevice = errors.New(
	"cuda: the driver finds no GPU: run nvidia-smi, and check which GPUs CUDA_VISIBLE_DEVICES hides")

// OldestDriver is the oldest supported driver version: CUDA 12.0.
const OldestDriver = 12000

// Library is an open driver library.
type Library struct {
	Path    string
	Version int // CUDA version of the driver: 1000·major + 10·minor

	api API
	hot hotSymbols
}

// Open finds the driver library and initialises it. If the library is missing, the error is a
// *dynlib.Error. If there is no GPU, the error is ErrNoDevice and the Library is returned too, for
// its path and version.
func Open(f *dynlib.Finder) (*Library, error) {
	h, err := f.Open(dynlib.Driver())
	if err != nil {
		return nil, err
	}
	l := &Library{Path: h.Path}
	if err := errors.Join(dynlib.Bind(&l.api, h), dynlib.Bind(&l.hot, h)); err != nil {
		return nil, err
	}
	useCU(&l.api)
	if l.Version, err = l.api.Start(); err != nil && !errors.Is(err, ErrNoDevice) {
		return nil, err
	}
	return l, err
}

// ForThread returns an API for one goroutine, with hot functions of its own.
func (l *Library) ForThread() *API {
	a := l.api
	a.HotAPI = l.hot.functions()
	useCUHot(&a.HotAPI)
	return &a
}

// Start initialises the driver and returns its version. If there is no GPU, it returns the version
// and ErrNoDevice.
func (a *API) Start() (version int, err error) {
	started := a.Init(0)
	if started != Success && started != NoDevice {
		return 0, a.Check(started, "cuInit", "starting the driver")
	}
	var v int32
	if err := a.Check(a.DriverGetVersion(&v), "cuDriverGetVersion", "asking for the driver's version"); err != nil {
		return 0, err
	}
	if started == NoDevice {
		return int(v), ErrNoDevice
	}
	if v < OldestDriver {
		return int(v), fmt.Errorf("cuda: the driver supports CUDA %s, want %s or newer: update the driver of the GPU",
			VersionText(int(v)), VersionText(OldestDriver))
	}
	return int(v), nil
}

// VersionText formats a version as major.minor.
func VersionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Properties describes a GPU.
type Properties struct {
	Name            string
	Memory          uintptr // bytes
	CC              int     // compute capability: 10·major + minor
	Multiprocessors int
	L2              int // bytes
	Cooperative     bool
	Shared          int // bytes of shared memory that a kernel may be given
	ClockRate       int // kHz
}

// Arch returns the architecture name that compilers use, such as "sm_90".
func (p Properties) Arch() string { return fmt.Sprintf("sm_%d", p.CC) }

func (a *API) Count() (int, error) {
	var n int32
	err := a.Check(a.DeviceGetCount(&n), "cuDeviceGetCount", "counting GPUs")
	return int(n), err
}

func (a *API) Describe(d Device) (Properties, error) {
	var p Properties
	name := make([]byte, 256)
	err := a.Check(a.DeviceGetName(&name[0], int32(len(name)), d), "cuDeviceGetName", "asking for the name of GPU %d",
		d)
	name[len(name)-1] = 0
	p.Name = dynlib.String(uintptr(unsafe.Pointer(&name[0])))
	err = errors.Join(err, a.Check(a.DeviceTotalMem(&p.Memory, d), "cuDeviceTotalMem",
		"asking for the memory of GPU %d", d))
	ask := func(at Attribute) int {
		var v int32
		err = errors.Join(err, a.Check(a.DeviceGetAttr(&v, at, d), "cuDeviceGetAttribute",
			"asking for attribute %d of GPU %d", at, d))
		return int(v)
	}
	p.CC = 10*ask(CapabilityMajor) + ask(CapabilityMinor)
	p.Multiprocessors, p.L2, p.Cooperative = ask(Multiprocessors), ask(L2Bytes), ask(CooperativeLaunch) != 0
	p.Shared, p.ClockRate = ask(SharedPerBlock), ask(ClockRate)
	return p, err
}
