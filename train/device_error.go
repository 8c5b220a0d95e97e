package train

import "fspda/device"

// faulty is a device that can be lost while it runs. What is read of it after that means nothing,
// and must not take the place of what was saved before.
type faulty interface{ Err() error }

// failureOf is why a device is lost, or nil.
func failureOf(dev device.Device) error {
	if f, ok := dev.(faulty); ok {
		return f.Err()
	}
	return nil
}
