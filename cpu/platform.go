package cpu

import "fspda/device"

func init() {
	device.RegisterPlatform(device.Platform{Name: "cpu", Open: func(_ int, o device.Options) (device.Opened, error) {
		options := []Option{Threads(o.Threads)}
		if o.Precision == "bf16" {
			options = append(options, BF16())
		}
		return New(options...), nil
	}})
}

// Model returns nothing: the host is called by its name.
func (d *Device) Model() string { return "" }
