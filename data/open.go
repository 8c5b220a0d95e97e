package data

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Variation says how training varies pictures besides crop and mirror. Its zero value changes none.
type Variation struct {
	Policy string  // changes of the pixels: one of Policies; empty means none
	Erase  float64 // probability of random erasing of an example
	// Repeat is how often an example appears in an epoch of sampling Epochs, each time with other
	// random numbers, while as many fewer examples appear; 0 means 1.
	Repeat int
	// Mixup and Cutmix are the parameters of the Beta distributions of the weights with which training
	// mixes pictures, LeastMix to MostMix; 0 leaves it out. With both, each batch takes one at random.
	Mixup, Cutmix float64
}

// OpenOptions configures [Open]. Each set uses its own options.
type OpenOptions struct {
	// mnist, fashion-mnist: the folder of the four files; cifar10, cifar100, writers: a folder or an
	// archive; imagenet, folder: a path for images.Open
	Dir       string
	TrainSize int     // synthetic sets: training examples; 0 means 20000
	TestSize  int     // synthetic sets: test examples; 0 means 4000
	Classes   int     // synthetic-images: 0 means 10
	Seed      uint64  // synthetic sets: selects one of many sets of the same kind
	Augment   Augment // augmentation of training; empty or auto selects the set's default
	Vary      Variation

	// For sets decoded on demand, see ImageOptions.
	Crop, ImageSize int
	JPEG            Decoder
	OnBad           OnBad
	Workers         int

	Command string // external: the program that has the examples

	ImageColumn, LabelColumn string // columns of tables; "" searches usual names

	// For text, see text.OpenOptions; the tokenizer auto means "".
	Tokenizer string
	Window    int // tokens of an example; 0 means 64
	// Agents lets the window become shorter, so that each of as many equal parts of the training text
	// has one, and the validation text; 0: the window is as long as Window says.
	Agents int
}

// registration is a named data set.
type registration struct {
	name  string
	open  func(OpenOptions) (*Set, error)
	reads bool   // The set is read from files.
	fixed bool   // Its examples have a fixed size.
	needs string // What the set needs, and how to get it; "": it can be opened without a folder.
}

var registered = []registration{
	{name: "synthetic", fixed: true, open: plain(func(o OpenOptions) (*Set, error) {
		return Synthetic(SyntheticOptions{Train: o.TrainSize, Test: o.TestSize, Seed: o.Seed})
	})},
	{name: "synthetic-images", open: func(o OpenOptions) (*Set, error) {
		return SyntheticImages(SyntheticImagesOptions{Train: o.TrainSize, Test: o.TestSize, Classes: o.Classes,
			Seed: o.Seed}, o.imageOptions())
	}},
	{name: "mnist", reads: true, fixed: true, needs: "folder given: " + mnist.hint,
		open: plain(func(o OpenOptions) (*Set, error) { return LoadMNIST(o.Dir) })},
	{name: "cifar10", reads: true, fixed: true, needs: "folder or archive given: " + cifar10.hint,
		open: func(o OpenOptions) (*Set, error) { return LoadCIFAR10(o.Dir, o.Augment) }},
	{name: "cifar100", reads: true, fixed: true, needs: "folder or archive given: " + cifar100.hint,
		open: func(o OpenOptions) (*Set, error) { return LoadCIFAR100(o.Dir, o.Augment) }},
	{name: "fashion-mnist", reads: true, fixed: true, needs: "folder given: " + fashion.hint,
		open: plain(func(o OpenOptions) (*Set, error) { return LoadFashionMNIST(o.Dir) })},
	{name: "imagenet", reads: true, open: func(o OpenOptions) (*Set, error) { return openImages("imagenet", o) }},
	{name: "folder", reads: true, open: func(o OpenOptions) (*Set, error) { return openImages("folder", o) }},
	{name: "writers", reads: true, fixed: true, needs: "folder or archive given: " + writersHint,
		open: plain(func(o OpenOptions) (*Set, error) { return LoadWriters(o.Dir) })},
	{name: "text", reads: true, fixed: true, open: openText},
	{name: "synthetic-text", fixed: true, open: openSyntheticText},
}

// Register adds a data set to those that [Open] and [Names] know. Call it from init functions. It
// panics if the name is taken.
func Register(name string, open func(OpenOptions) (*Set, error)) {
	if slices.Contains(Names(), name) {
		panic("data: Register: a data set is already named " + name)
	}
	registered = append(registered, registration{name: name, open: open})
}

// FileSets lists the sets of this module that are read from files.
func FileSets() (names []string) {
	for _, r := range registered {
		if r.reads {
			names = append(names, r.name)
		}
	}
	return names
}

// HasFixedSize reports whether the examples of a set of this module have a fixed size.
func HasFixedSize(name string) bool {
	return slices.ContainsFunc(registered, func(r registration) bool { return r.name == name && r.fixed })
}

// Names lists the sets known to Open.
func Names() (names []string) {
	for _, r := range registered {
		names = append(names, r.name)
	}
	return names
}

// signs are patterns of files that only one set has.
var signs = [][2]string{
	{"train-images?idx3-ubyte*", "mnist"}, {"fine_label_names.txt", "cifar100"},
	{"*/fine_label_names.txt", "cifar100"}, {"data_batch_1.bin", "cifar10"}, {"*/data_batch_1.bin", "cifar10"},
	{"data_batch_1", "cifar10"}, {"*/data_batch_1", "cifar10"},
	{"ILSVRC2012_img_*.tar", "imagenet"}, {"train/n[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]", "imagenet"},
	{"train.bin", "text"}, {"*_train.bin", "text"},
}

// Recognize returns the name of the set whose files a folder holds, by their names: mnist, cifar10,
// cifar100, imagenet or text, which may be a .txt file itself; empty if they leave a doubt.
// Fashion-MNIST has the files of MNIST: it is told by the name of its folder, which has "fashion"
// in it.
func Recognize(dir string) string {
	if strings.HasSuffix(dir, ".txt") {
		return "text"
	}
	for _, sign := range signs {
		if found, err := fs.Glob(os.DirFS(dir), sign[0]); err == nil && len(found) > 0 {
			if base := filepath.Base(dir); sign[1] == mnist.name && strings.Contains(strings.ToLower(base), "fashion") {
				return fashion.name
			}
			return sign[1]
		}
	}
	return ""
}

// Open returns a set by name: synthetic (generated digits), synthetic-images (generated images),
// mnist, cifar10, cifar100, fashion-mnist, imagenet, writers, folder (any folder or archive of
// labelled images), text, or synthetic-text (a generated text). The caller must close it.
// [Register] adds others.
func Open(name string, o OpenOptions) (*Set, error) {
	for _, r := range registered {
		if r.name == name {
			if r.needs != "" && o.Dir == "" {
				return nil, fmt.Errorf("data: set %s: no %s", name, r.needs)
			}
			s, err := r.open(o)
			if err != nil {
				return nil, err
			}
			if err := s.vary(o.Vary); err != nil {
				return nil, errors.Join(err, s.Close())
			}
			return s, nil
		}
	}
	return nil, fmt.Errorf("data: set %q is not known, want %s", name, strings.Join(Names(), ", "))
}

// vary sets how training varies pictures.
func (s *Set) vary(v Variation) error {
	return cmp.Or(s.setPolicy(v.Policy), s.randomErase(v.Erase), s.repeatEach(v.Repeat),
		s.setMixing(mixing{v.Mixup, v.Cutmix}))
}

// plain returns the function that opens a set without augmentation by default.
func plain(open func(OpenOptions) (*Set, error)) func(OpenOptions) (*Set, error) {
	return func(o OpenOptions) (*Set, error) {
		s, err := open(o)
		if err != nil {
			return nil, err
		}
		return s, s.augment(o.Augment, None)
	}
}
