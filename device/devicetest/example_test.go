package devicetest_test

import (
	"fmt"

	"fspda/device"
	"fspda/device/devicetest"
)

// The loss of one example with two equal logits is log 2, and its gradient is ±1/2.
func ExampleInterpret() {
	loss, dlogits := []float64{0}, []float64{0, 0}
	devicetest.Interpret(&device.Call{Kernel: device.SoftmaxCrossEntropy, Dims: []int{1, 2}},
		[][]float64{{7, 7}, {1}}, [][]float64{loss, dlogits})
	fmt.Printf("%.4f %.4f\n", loss[0], dlogits)
	// Output: 0.6931 [0.5000 -0.5000]
}

// Thirty halvings of a difference are exact in float64; float32 would stop at 24.
func ExampleNewFloat64() {
	d := devicetest.NewFloat64()
	x, target := d.NewVector(1), d.NewVector(1)
	d.Write(target, []float32{1})
	for range 30 {
		d.Do(device.AddDiff(target, x, nil, device.Term{A: 0.5, V: x}))
	}
	fmt.Println(1 - x.(*devicetest.Vector64).Data[0])
	// Output: 9.313225746154785e-10
}
