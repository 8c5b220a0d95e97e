package memory_test

import (
	"fmt"

	"fspda/data"
	"fspda/model"
	"fspda/train/config"
	"fspda/train/memory"
)

// network is a model of 100,000 parameters.
type network struct{}

func (network) Dim() int { return 100_000 }
func (network) Describe() model.Description {
	return model.Description{Tensors: model.Vectors(100_000)}
}

// The agents' vectors make up most of a run of a small network: with more agents the process grows.
func Example() {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 4000, Test: 100, Seed: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := config.Default()
	c.Batch, c.Partition, c.Threads = 1, "shuffled", 1
	for _, c.Agents = range []int{10, 100} {
		s, err := c.Resolve(set, network{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(c.Agents, "agents fit:", memory.Check(s) == nil)
	}
	// Output:
	// 10 agents fit: true
	// 100 agents fit: true
}
