package driver

// Attribute is a number that a device tells of itself.
type Attribute int32

const (
	Multiprocessors   Attribute = 16
	L2Bytes           Attribute = 38
	CapabilityMajor   Attribute = 75
	CapabilityMinor   Attribute = 76
	CooperativeLaunch Attribute = 95
	SharedMemoryOptIn Attribute = 97
)

// FuncAttribute is a setting of a kernel.
type FuncAttribute int32

// MaxDynamicShared is how much dynamic shared memory a launch may ask for, beyond 48 KB.
const MaxDynamicShared FuncAttribute = 8

// Flags.
const (
	StreamNonBlocking  = 1 // not ordered with the default stream
	EventDisableTiming = 2
	HostPortable       = 1 // pinned for all contexts
	CaptureThreadLocal = 1
)
