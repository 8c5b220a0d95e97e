package device_test

import (
	"fmt"

	_ "fspda/cpu" // registers the host
	"fspda/device"
)

// Programs open devices by name, of the kinds whose packages they import.
func ExampleParseName() {
	for _, name := range []string{"cpu", "cpu:0", "tpu"} {
		kind, _, err := device.ParseName(name)
		fmt.Println(kind.Name, err)
	}
	// Output:
	// cpu <nil>
	//  device: there is no device "cpu:0" in this program
	//  device: there is no device "tpu" in this program
}
