package cuda

import (
	"os"
	"testing"

	"fspda/cuda/driver/drivertest"
	"fspda/device"
	"fspda/device/devicetest"
)

// On an imaginary GPU the contract has very many small tasks: they go through the owner's goroutine in long tests only.
func TestContract(t *testing.T) {
	d, _ := imaginary(t, drivertest.Options{}, os.Getenv("FSPDA_LONG") == "")
	devicetest.Contract(t, func() device.Device { return d })
}
