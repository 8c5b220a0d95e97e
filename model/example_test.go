package model_test

import (
	"fmt"

	"fspda/cpu"
	"fspda/device"
	"fspda/model"
)

// The network of the MNIST experiments and its layout.
func ExampleMLP() {
	net, err := model.MLP(model.MLPOptions{Inputs: 784, Hidden: []int{100}, Classes: 10, WeightDecay: 1e-4})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(net.Name(), "has", net.Dim(), "parameters")
	for _, t := range net.Layout().Tensors() {
		fmt.Println(t.Offset, t.Name, t.Shape)
	}
	// Output:
	// mlp 784-100-10 sigmoid has 79510 parameters
	// 0 fc1.weight [100 784]
	// 78400 fc1.bias [100]
	// 78500 fc2.weight [10 100]
	// 79500 fc2.bias [10]
}

// A plan is a list of kernel calls that any device can load. This one evaluates a linear model.
func ExampleNetwork_Plan() {
	net, err := model.MLP(model.MLPOptions{Inputs: 4, Classes: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := net.Plan(2, model.Score)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// mlp 4-3, score, batch 2: 15 parameters, 2 calls, 48 FLOP, arena 32 (32 without reuse)
	//   0  linear                       fc1         2×4 input[0:8], 3×4 params[0:12], 3 params[12:15] -> 2×3 arena[0:6]
	//   1  score                        score       2×3 arena[0:6], 2 labels[0:2] -> 3 arena[16:19]
	// loss_sum = arena[16:17]
	// hits = arena[17:18]
	// hits5 = arena[18:19]
}

// A residual network is opened by its name, and an Engine trains it: a step computes the gradient
// and updates the running statistics.
func ExampleOpen() {
	net, err := model.Open("resnet20", model.Options{Shape: []int{32, 32, 3}, Classes: 10,
		Loss: model.LossOptions{WeightDecay: 1e-4, LabelSmoothing: 0.1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	last, _ := net.Layout().Tensor("layer3.0.downsample.0.weight")
	fmt.Println(net.Name(), net.Dim(), last.Shape, last.Axes)

	dev := cpu.New()
	engine := model.NewEngine(net, dev)
	x, grad, buffers := dev.NewVector(net.Dim()), dev.NewVector(net.Dim()), dev.NewVector(net.Buffers().Dim())
	dev.Write(x, net.Init(1))
	dev.Write(buffers, net.InitBuffers())
	batch := device.Batch{X: make([]float32, 2*net.Inputs()), Y: []int32{3, 7}} // two black images
	loss, err := engine.Step(grad, x, buffers, batch)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("loss %.2f\n", loss)
	// Output:
	// resnet20 32×32×3 to 10 272474 [64 1 1 32] OHWI
	// loss 2.41
}
