package driver

// Attribute selects a property of a device.
type Attribute int32

const (
	ClockRate         Attribute = 13 // kHz
	Multiprocessors   Attribute = 16
	L2Bytes           Attribute = 38
	CapabilityMajor   Attribute = 75
	CapabilityMinor   Attribute = 76
	CooperativeLaunch Attribute = 95
	SharedPerBlock    Attribute = 97 // bytes, the most that a kernel may be given
)

// Flags of streams, events, pinned memory and captures.
const (
	StreamNonBlocking  = 1 // does not synchronise with the default stream
	EventDisableTiming = 2
	HostPortable       = 1 // pinned memory is valid in all contexts
	CaptureThreadLocal = 1
)

// MaxDynamicShared is the attribute of a function that allows its launches more dynamic shared
// memory than DefaultShared bytes.
const (
	MaxDynamicShared = 8
	DefaultShared    = 48 << 10
)
