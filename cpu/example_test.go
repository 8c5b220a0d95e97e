package cpu_test

import (
	"fmt"
	"strings"

	"fspda/cpu"
	"fspda/device"
)

// Two agents exchange coordinates 1 and 3, and each moves a quarter of the way: their mean does not
// change.
func ExampleDevice_Do() {
	d := cpu.New()
	x, y := d.NewVector(4), d.NewVector(4)
	d.Write(x, []float32{1, 2, 3, 4})
	d.Write(y, []float32{5, 6, 7, 8})
	mask := d.NewIndex([]uint32{1, 3}, nil)
	ofX, ofY := d.NewVector(2), d.NewVector(2)
	d.Do(device.Gather(ofX, x, mask))
	d.Do(device.Gather(ofY, y, mask))

	d.Do(device.AddDiff(ofX, ofY, mask, device.Term{A: -0.25, V: x}))
	d.Do(device.AddDiff(ofY, ofX, mask, device.Term{A: -0.25, V: y}))
	fmt.Println(x.(*cpu.Vector).Data, y.(*cpu.Vector).Data)
	// Output: [1 3 3 5] [5 5 7 7]
}

// A fully connected layer of two inputs and two outputs.
func ExampleCall() {
	y := make([]float32, 2)
	err := cpu.Call(&device.Call{Kernel: device.Linear, Dims: []int{1, 2, 2}},
		[][]float32{{1, 2}, {10, 20, 30, 40}, {0.5, -0.5}}, [][]float32{y})
	fmt.Println(y, err)
	// Output: [50.5 109.5] <nil>
}

// A label that is not a class is an error that names the row.
func ExampleLabelError() {
	err := cpu.Call(&device.Call{Kernel: device.Score, Dims: []int{2, 3}, Name: "test"},
		[][]float32{make([]float32, 6), {0, 7}}, [][]float32{make([]float32, 3)})
	text, _, _ := strings.Cut(err.Error(), ": check")
	fmt.Println(text)
	// Output: cpu: score (test): label of row 1 is 7, want an integer from 0 to 2
}
