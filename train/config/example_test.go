package config_test

import (
	"fmt"

	"fspda/data"
	"fspda/model"
	"fspda/train/config"
)

// network is a model of four parameters in two tensors.
type network struct{}

func (network) Dim() int { return 4 }
func (network) Describe() model.Description {
	return model.Description{Tensors: model.Vectors(3, 1)}
}

// A key goes from YAML into a Config, and from there into the algorithm of a Setup.
func Example() {
	c := config.Default()
	if err := c.Parse("example.yaml", []byte("{algo: dsgd, agents: 4, graph: ring, theta: 0.4}")); err != nil {
		fmt.Println(err)
		return
	}
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := c.Resolve(set, network{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Algo.Name(), s.Graph.N, s.Process, s.Config.Theta)
	c.Density = 2
	fmt.Println(c.Check())
	// Output:
	// dsgd 4 one-edge 0.4
	// config: density 2: expected above 0 and at most 1: the share of coordinates that an exchange carries
}
