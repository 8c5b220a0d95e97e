package data

import (
	"fmt"
	"strings"
)

// OpenOptions are what [Open] needs besides the name of a set. Each set looks at its own.
type OpenOptions struct {
	Dir       string  // mnist: the folder of the four files; cifar10: a folder or an archive
	TrainSize int     // synthetic: training examples; 0 means 20000
	TestSize  int     // synthetic: test examples; 0 means 4000
	Seed      uint64  // synthetic: which set of its kind
	Augment   Augment // how training varies the examples; empty or auto leaves it to the set
}

// Names lists the sets that Open knows.
func Names() []string { return []string{"synthetic", "mnist", "cifar10"} }

// Open returns a set by name: synthetic, the built-in digits; mnist or cifar10, read from files.
func Open(name string, o OpenOptions) (*Set, error) {
	switch name {
	case "synthetic":
		return plain(o, func() (*Set, error) {
			return Synthetic(SyntheticOptions{Train: o.TrainSize, Test: o.TestSize, Seed: o.Seed})
		})
	case "mnist":
		if o.Dir == "" {
			return nil, fmt.Errorf("data: set mnist: no folder given: %s", mnistHint)
		}
		return plain(o, func() (*Set, error) { return LoadMNIST(o.Dir) })
	case "cifar10":
		if o.Dir == "" {
			return nil, fmt.Errorf("data: set cifar10: no folder or archive given: %s", cifarHint)
		}
		return LoadCIFAR10(o.Dir, o.Augment)
	}
	return nil, fmt.Errorf("data: set %q is not known, want %s", name, strings.Join(Names(), ", "))
}

// plain opens a set whose examples are not varied unless that is asked for.
func plain(o OpenOptions, open func() (*Set, error)) (*Set, error) {
	varied, err := o.Augment.settle(None)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	s, err := open()
	if err != nil {
		return nil, err
	}
	s.Train.varied = varied
	return s, nil
}
