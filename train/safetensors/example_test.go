package safetensors_test

import (
	"bytes"
	"fmt"

	"fspda/train/safetensors"
)

// Two vectors of an agent are written to a file and read again.
func Example() {
	var file bytes.Buffer
	err := safetensors.Write(&file, []safetensors.Tensor{
		{Name: "x", Shape: []int{2, 2}, Values: []float32{1, 2, 3, 4}},
		{Name: "lambda", Shape: []int{4}, Values: []float32{0, -1, 0, 1}},
	}, map[string]string{"agent": "3"})
	if err != nil {
		fmt.Println(err)
		return
	}

	f, err := safetensors.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range f.Tensors() {
		fmt.Println(t.Name, t.DType, t.Shape, t.Size)
	}
	lambda, err := safetensors.Load[float32](f, "lambda")
	fmt.Println(lambda, err, f.Metadata()["agent"])
	// Output:
	// x F32 [2 2] 16
	// lambda F32 [4] 16
	// [0 -1 0 1] <nil> 3
}
