package bench_test

import (
	"fmt"

	"fspda/bench"
	"fspda/train/config"
)

// Seeds turn each job into one run a seed.
func ExampleSeeds_Jobs() {
	var seeds bench.Seeds
	if err := seeds.Set("1,2"); err != nil {
		fmt.Println(err)
		return
	}
	jobs, err := seeds.Jobs([]bench.Job{{Name: "dsgd", Config: config.Default()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, j := range jobs {
		fmt.Println(j.Name, j.Config.Seed)
	}
	// Output:
	// dsgd-seed-1 1
	// dsgd-seed-2 2
}
