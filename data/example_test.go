package data_test

import (
	"fmt"
	"log"

	"fspda/data"
)

// From a set to the batches of one agent of four.
func Example() {
	set, err := data.Open("synthetic", data.OpenOptions{TrainSize: 1000, TestSize: 100, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	partition, err := data.ParsePartition("shuffled")
	if err != nil {
		log.Fatal(err)
	}
	shards, err := partition.Split(set.Train.Labels, set.Classes, 4, 1)
	if err != nil {
		log.Fatal(err)
	}
	loader, err := data.NewLoader(set.Train, shards[2], 2, data.LoaderOptions{Batch: 64, Seed: 1, Ahead: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer loader.Close()
	for range 4 {
		b, err := loader.Next()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.N(), "examples of", len(b.Numbers(nil, set.Features()))/b.N(), "values")
		loader.Release(b)
	}
	// Output:
	// 64 examples of 784 values
	// 64 examples of 784 values
	// 64 examples of 784 values
	// 58 examples of 784 values
}

// Sorted by label, two agents share no class.
func ExampleHistogram() {
	labels := []int32{1, 0, 1, 0, 2, 2}
	shards, err := data.Sorted{}.Split(labels, 3, 3, 0)
	if err != nil {
		log.Fatal(err)
	}
	counts := data.Histogram(labels, 3, shards)
	fmt.Println(counts, data.Skew(counts))
	// Output: [[2 0 0] [0 2 0] [0 0 2]] 1
}

// A spec is printed in its canonical form.
func ExampleParsePartition() {
	p, err := data.ParsePartition(" dirichlet( 0.30, 10 )")
	fmt.Println(p, err)
	// Output: dirichlet(0.3) <nil>
}
