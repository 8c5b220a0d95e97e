package device_test

import (
	"fmt"

	"fspda/device"
	"fspda/device/devicetest"
)

// Two agents exchange coordinates 1 and 3 and move towards each other there: x ← x - ½(own -
// other).
func Example() {
	var dev device.Device = devicetest.NewFloat64() // any device
	a, b := dev.NewVector(4), dev.NewVector(4)
	dev.Write(a, []float32{0, 0, 0, 0})
	dev.Write(b, []float32{2, 4, 6, 8})

	mask := dev.NewIndex([]uint32{1, 3}, nil)
	fromA, fromB := dev.NewVector(mask.Len()), dev.NewVector(mask.Len())
	dev.Do(device.Gather(fromA, a, mask))
	dev.Do(device.Gather(fromB, b, mask))
	dev.Do(device.AddDiff(fromA, fromB, mask, device.Term{A: -0.5, V: a}))
	dev.Do(device.AddDiff(fromB, fromA, mask, device.Term{A: -0.5, V: b}))

	x := make([]float32, 4)
	dev.Read(x, a)
	fmt.Println(x)
	dev.Read(x, b)
	fmt.Println(x)
	// Output:
	// [0 2 0 4]
	// [2 2 6 4]
}
