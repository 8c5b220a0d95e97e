package train_test

import (
	"context"
	"fmt"

	"fspda/cpu"
	"fspda/data"
	"fspda/model"
	"fspda/train"
)

// Four agents that hold different digits train one small network; nothing is written.
func ExampleRun() {
	c := train.Default()
	c.Agents, c.Graph, c.Partition, c.Batch, c.Iterations = 4, "ring", "sorted", 20, 1000
	set, err := data.Synthetic(data.SyntheticOptions{Train: 800, Test: 200, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	net, err := model.MLP(model.MLPOptions{Inputs: set.Features(), Classes: set.Classes, Hidden: []int{16}})
	if err != nil {
		fmt.Println(err)
		return
	}
	dev := cpu.New()
	engine := model.NewEngine(net, dev)
	setup, err := c.Resolve(set, engine)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := train.Run(context.Background(), setup, train.Options{Device: dev, Model: engine})
	if err != nil {
		fmt.Println(err)
		return
	}
	last := result.Rows[len(result.Rows)-1]
	fmt.Println(result.Status, last.TestAccAvg > 0.6, last.DualSum < 1e-4)
	// Output: finished true true
}
