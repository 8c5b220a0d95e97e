package data

import "fmt"

// OpenOptions are what [Open] needs besides the name of a set. Each set looks at its own.
type OpenOptions struct {
	Dir       string // mnist: the folder of the four files
	TrainSize int    // synthetic: training examples; 0 means 20000
	TestSize  int    // synthetic: test examples; 0 means 4000
	Seed      uint64 // synthetic: which set of its kind
}

// Open returns a set by name: synthetic, the built-in digits, or mnist, read from a folder.
func Open(name string, o OpenOptions) (*Set, error) {
	switch name {
	case "synthetic":
		return Synthetic(SyntheticOptions{Train: o.TrainSize, Test: o.TestSize, Seed: o.Seed})
	case "mnist":
		if o.Dir == "" {
			return nil, fmt.Errorf("data: set mnist: no folder given: %s", mnistHint)
		}
		return LoadMNIST(o.Dir)
	}
	return nil, fmt.Errorf("data: set %q is not known, want synthetic or mnist", name)
}
