package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Platform is a kind of devices that programs open by name. Its package registers it.
type Platform struct {
	Name string // The name of a device, or of all devices of the kind; cuda:1 and cuda:0,1 choose some.
	// Count returns the number of devices, or why there is none. It is nil for the host, whose device
	// has no number.
	Count func() (int, error)
	// Open opens the device of a number.
	Open func(index int, o Options) (Opened, error)
	// Lost reports whether an error says that a device is lost: nothing works on it any more in this
	// process. It is nil for devices that cannot be lost.
	Lost func(err error) bool
}

// Options are the settings of a device. A kind without a use for one ignores it.
type Options struct {
	Threads       int    // Threads of the host for each Program.
	Precision     string // The arithmetic of networks.
	Deterministic bool   // Each run has the same bits on a device.
	// Memory returns n zeros that hold a vector of the host; nil: ordinary memory.
	Memory func(n int) []float32
}

// Opened is a device that was opened by name.
type Opened interface {
	Device
	Model() string // The name that its maker gives it; it may be empty.
	Close() error  // Close waits for its work and releases it.
}

// PrecisionError says that a device works, and does not support the precision that was asked for.
type PrecisionError interface {
	error
	UnsupportedPrecision()
}

var platforms []Platform

// RegisterPlatform adds a platform. Call it from init functions.
func RegisterPlatform(p Platform) { platforms = append(platforms, p) }

// Platforms lists the platforms of devices of this program.
func Platforms() []Platform { return slices.Clone(platforms) }

// ParseName returns the platform that a name names, and the numbers in it; no numbers stand for all
// devices of the kind.
func ParseName(name string) (p Platform, indices []int, err error) {
	kind, numbers, given := strings.Cut(name, ":")
	at := slices.IndexFunc(platforms, func(p Platform) bool { return p.Name == kind })
	if at < 0 || given && platforms[at].Count == nil {
		return p, nil, fmt.Errorf("device: there is no device %q in this program", name)
	}
	if !given {
		return platforms[at], nil, nil
	}
	for n := range strings.SplitSeq(numbers, ",") {
		i, err := strconv.ParseUint(n, 10, 16)
		if err != nil || slices.Contains(indices, int(i)) {
			return p, nil, fmt.Errorf("%s: device %q: want %[1]s, %[1]s:N with N from 0 on, or several as in %[1]s:0,1",
				kind, name)
		}
		indices = append(indices, int(i))
	}
	return platforms[at], indices, nil
}

// OpenSeveral opens the devices with these numbers, or all where indices is nil, but no more than
// most.
func (p Platform) OpenSeveral(indices []int, most int, o Options) (all []Opened, err error) {
	if indices == nil {
		n := 1
		if p.Count != nil {
			if n, err = p.Count(); err != nil {
				return nil, err
			}
		}
		for i := range n {
			indices = append(indices, i)
		}
	}
	for _, i := range indices[:min(len(indices), most)] {
		d, err := p.Open(i, o)
		if err != nil {
			for _, d := range all {
				_ = d.Close() // the first error is returned
			}
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Lost reports whether an error says that a device is lost.
func Lost(err error) bool {
	return slices.ContainsFunc(platforms, func(p Platform) bool { return p.Lost != nil && p.Lost(err) })
}
