package cli_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fspda/cli"
	"fspda/data"
	"fspda/model"
)

func init() {
	model.Register("linear", func(o model.Options) (*model.Network, error) {
		o.Hidden = []int{}
		return model.Open("mlp", o)
	})
	data.Register("few-digits", func(o data.OpenOptions) (*data.Set, error) {
		return data.Synthetic(data.SyntheticOptions{Train: 200, Test: 50, Seed: o.Seed})
	})
}

// A program with a network and a data set of its own. Its main function would be cli.Main().
func Example() {
	dir, err := os.MkdirTemp("", "fspda-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	args := []string{"train", "--model", "linear", "--data", "few-digits", "--agents", "2", "--batch", "8",
		"--iterations", "20", "--quiet", "--out", filepath.Join(dir, "run")}
	fmt.Println("exit status", cli.Run(context.Background(), args, io.Discard, os.Stderr))
	// Output: exit status 0
}
