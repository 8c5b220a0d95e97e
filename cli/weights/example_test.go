package weights_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"fspda/cli/weights"
	"fspda/model"
	"fspda/train"
)

// Weights survive a file bit for bit.
func Example() {
	net, err := model.Open("mlp", model.Options{Shape: []int{2}, Classes: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "fspda-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path, x := filepath.Join(dir, "model.safetensors"), net.Init(1)
	about := weights.Metadata("run", "mean", 0, net, train.Default())
	if err := weights.Save(path, weights.Tensors(net, x, nil, 0), about); err != nil {
		fmt.Println(err)
		return
	}
	read, err := weights.Read(path, net, weights.Options{})
	fmt.Println(slices.Equal(read.X, x), err)
	// Output: true <nil>
}
