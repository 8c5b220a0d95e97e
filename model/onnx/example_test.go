package onnx_test

import (
	"bytes"
	"fmt"

	"fspda/model"
	"fspda/model/onnx"
)

// This example exports an untrained network; in practice the parameters come from a run.
func ExampleWrite() {
	net, err := model.MLP(model.MLPOptions{Inputs: 784, Hidden: []int{100}, Classes: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if err := onnx.Write(&file, net, net.Init(1), nil, map[string]string{"run": "first"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(net.Dim(), "parameters,", file.Len() > 4*net.Dim())
	// Output: 79510 parameters, true
}
