package cpu

import (
	"fspda/cpu/tile"
	"fspda/device"
)

func init() {
	device.RegisterPlatform(device.Platform{Name: "cpu", Open: func(_ int, o device.Options) (device.Opened, error) {
		options := []Option{Threads(o.Threads), Memory(o.Memory)}
		if o.Precision == "bf16" {
			options = append(options, BF16())
		}
		return New(options...), nil
	}})
}

// Model says how products of bfloat16 numbers are computed, with the option BF16. Else it returns
// nothing: the host is called by its name.
func (d *Device) Model() string {
	if !d.bf16 {
		return ""
	}
	return "bf16 by " + tile.PairUnit()
}
