package data

import (
	"fmt"
	"strings"
)

// OpenOptions are what [Open] needs besides the name of a set. Each set looks at its own.
type OpenOptions struct {
	// mnist: the folder of the four files; cifar10: a folder or an archive; imagenet, folder: what
	// images.Open takes
	Dir       string
	TrainSize int     // synthetic sets: training examples; 0 means 20000
	TestSize  int     // synthetic sets: test examples; 0 means 4000
	Classes   int     // synthetic-images: 0 means 10
	Seed      uint64  // synthetic sets: which of its kind
	Augment   Augment // how training varies the examples; empty or auto leaves it to the set

	// For sets of pictures that are decoded when they are wanted, as PictureOptions has them.
	Crop, ImageSize int
	JPEG            Decoder
	OnBad           OnBad
	Workers         int
}

// Names lists the sets that Open knows.
func Names() []string {
	return []string{"synthetic", "synthetic-images", "mnist", "cifar10", "imagenet", "folder"}
}

// Open returns a set by name: synthetic, the built-in digits; synthetic-images, built-in pictures;
// mnist, cifar10, imagenet, or any folder or archive of labelled pictures, read from files. Close
// it after use.
func Open(name string, o OpenOptions) (*Set, error) {
	switch name {
	case "synthetic":
		return plain(o, func() (*Set, error) {
			return Synthetic(SyntheticOptions{Train: o.TrainSize, Test: o.TestSize, Seed: o.Seed})
		})
	case "synthetic-images":
		return SyntheticImages(SyntheticImagesOptions{Train: o.TrainSize, Test: o.TestSize, Classes: o.Classes,
			Seed: o.Seed}, o.pictures())
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
	case "imagenet", "folder":
		return openPictures(name, o)
	}
	return nil, fmt.Errorf("data: set %q is not known, want %s", name, strings.Join(Names(), ", "))
}

// plain opens a set whose examples are not varied unless that is asked for.
func plain(o OpenOptions, open func() (*Set, error)) (*Set, error) {
	s, err := open()
	if err != nil {
		return nil, err
	}
	return s, s.augment(o.Augment, None)
}
