package cpu

import "fspda/device"

func init() {
	device.RegisterPlatform(device.Platform{Name: "cpu", Open: func(_ int, o device.Options) (device.Opened, error) {
		return New(Threads(o.Threads), Memory(o.Memory)), nil
	}})
}

// Model returns nothing: the host is called by its name.
func (d *Device) Model() string { return "" }
