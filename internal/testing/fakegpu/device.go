package fakegpu

import (
	"unsafe"

	"fspda/cuda/driver"
)

// multiprocessors is the number of multiprocessors per GPU.
const multiprocessors = 4

// contextBase is the context handle of GPU 0; GPU i has contextBase + i.
const contextBase = 0x100

// invalidDevice is CUDA_ERROR_INVALID_DEVICE.
const invalidDevice driver.Result = 101

func (m *Machine) setDevice(a *driver.API) {
	a.Init = func(uint32) driver.Result {
		if m.options.GPUs < 0 {
			return driver.NoDevice
		}
		return driver.Success
	}
	a.DriverGetVersion = func(out *int32) driver.Result { *out = int32(m.options.Version); return driver.Success }
	a.DeviceGetCount = func(out *int32) driver.Result { *out = int32(m.options.GPUs); return driver.Success }
	a.DeviceGet = func(out *driver.Device, i int32) driver.Result {
		*out = driver.Device(i)
		return m.checkDevice(*out)
	}
	a.DeviceGetName = func(out *byte, n int32, d driver.Device) driver.Result {
		copy(unsafe.Slice(out, n), "Fake GPU\x00")
		return m.checkDevice(d)
	}
	a.DeviceTotalMem = func(out *uintptr, d driver.Device) driver.Result {
		*out = m.options.Memory
		return m.checkDevice(d)
	}
	a.DeviceGetAttr = func(out *int32, at driver.Attribute, d driver.Device) driver.Result {
		*out = m.attribute(at)
		return m.checkDevice(d)
	}
	a.DeviceCanAccess = func(out *int32, d, peer driver.Device) driver.Result {
		if *out = 1; m.options.NoPeers {
			*out = 0
		}
		return max(m.checkDevice(d), m.checkDevice(peer))
	}
}

func (m *Machine) setContext(a *driver.API) {
	a.PrimaryCtxRetain = func(out *driver.Context, d driver.Device) driver.Result {
		m.retained[d]++
		*out = contextBase + driver.Context(d)
		return m.checkDevice(d)
	}
	a.PrimaryCtxRelease = func(d driver.Device) driver.Result {
		if m.retained[d] == 0 {
			return driver.InvalidContext
		}
		m.retained[d]--
		return driver.Success
	}
	a.CtxSetCurrent = func(c driver.Context) driver.Result {
		if c != 0 && m.retained[driver.Device(c-contextBase)] == 0 {
			return driver.InvalidContext
		}
		m.current[thread()] = c
		return driver.Success
	}
	a.CtxEnablePeer = func(peer driver.Context, _ uint32) driver.Result {
		pair := [2]driver.Context{m.current[thread()], peer}
		if m.retained[driver.Device(peer-contextBase)] == 0 || pair[0] == peer {
			return driver.InvalidContext
		}
		if m.peers[pair] {
			return driver.PeerAlreadyEnabled
		}
		m.peers[pair] = true
		return driver.Success
	}
}

func (m *Machine) checkDevice(d driver.Device) driver.Result {
	if d < 0 || int(d) >= m.options.GPUs {
		return invalidDevice
	}
	return driver.Success
}

func (m *Machine) attribute(a driver.Attribute) int32 {
	switch a {
	case driver.CapabilityMajor:
		return int32(m.options.CC / 10)
	case driver.CapabilityMinor:
		return int32(m.options.CC % 10)
	case driver.Multiprocessors:
		return multiprocessors
	case driver.CooperativeLaunch:
		if m.options.NoCooperative {
			return 0
		}
	case driver.SharedPerBlock:
		return m.options.mostShared()
	case driver.L2Bytes:
		return 4 << 20
	}
	return 1
}

// mostShared returns the bytes of shared memory that GPUs of the compute capability give a block.
func (o Options) mostShared() int32 {
	switch {
	case o.CC < 75:
		return 96 << 10
	case o.CC < 80:
		return 64 << 10
	case o.CC == 80:
		return 163 << 10
	case o.CC < 90:
		return 99 << 10
	}
	return 227 << 10
}
