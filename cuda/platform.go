package cuda

import (
	"fspda/cuda/driver"
	"fspda/cuda/dynlib"
	"fspda/device"
)

func init() {
	device.RegisterPlatform(device.Platform{Name: "cuda", Count: count, Lost: Lost,
		Open: func(index int, o device.Options) (device.Opened, error) {
			d, err := Open(index, WithPrecision(Precision(o.Precision)), Deterministic(o.Deterministic))
			if err != nil {
				return nil, err
			}
			return d, nil
		}})
}

var _ device.PrecisionError = (*PrecisionError)(nil)

// UnsupportedPrecision marks the error for programs that do not know the kind of the device.
func (*PrecisionError) UnsupportedPrecision() {}

func (d *Device) Model() string { return d.properties.Name }

// count returns the number of GPUs that the driver finds, of those that CUDA_VISIBLE_DEVICES lists.
func count() (int, error) {
	l, err := driver.Open(dynlib.System())
	if err != nil {
		return 0, err
	}
	n, err := l.ForThread().Count()
	if err == nil && n == 0 {
		err = driver.ErrNoDevice
	}
	return n, err
}
