package runfolder_test

import (
	"fmt"
	"os"
	"path/filepath"

	"fspda/data"
	"fspda/model"
	"fspda/train/config"
	"fspda/train/runfolder"
)

// network is a model of four parameters.
type network struct{}

func (network) Dim() int { return 4 }
func (network) Describe() model.Description {
	return model.Description{Tensors: model.Vectors(4)}
}

// A run folder holds the resolved configuration: what was auto is a value.
func Example() {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config.Default()
	c.Agents, c.Batch = 4, 16
	s, err := c.Resolve(set, network{})
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "runfolder")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	run := filepath.Join(dir, "run")
	f, err := runfolder.OpenFolder(run, s, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	saved, err := runfolder.ReadConfig(run)
	fmt.Println(c.Edges, saved.Edges, runfolder.LatestIteration(run), err)
	// Output: auto one-edge 0 <nil>
}
