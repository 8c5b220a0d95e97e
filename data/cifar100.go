package data

import "strings"

// cifar100Classes are the names of the fine classes in label order, which is alphabetical.
var cifar100Classes = strings.Fields("apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy " +
	"bridge bus butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab " +
	"crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp " +
	"lawn_mower leopard lion lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid " +
	"otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket " +
	"rose sea seal shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table " +
	"tank telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm")

// The means and standard deviations are of pixel/255 over the training images: red, green, blue. A
// record has a coarse label, of 20 groups of classes, which is not used, and a fine one.
var cifar100 = &cifarSet{name: "cifar100", title: "CIFAR-100", other: "CIFAR-10", classes: cifar100Classes,
	labels: []int{20, 100}, files: map[string][]string{"train": {"train.bin"}, "test": {"test.bin"}},
	python: map[string][]string{"train": {"train"}, "test": {"test"}}, pythonLabels: []string{"coarse_labels",
		"fine_labels"},
	mean: []float32{0.5071, 0.4865, 0.4409}, std: []float32{0.2673, 0.2564, 0.2762},
	hint: "fspda data cifar100 fetches it to data/cifar100; CIFAR-100 is read in its binary version (train.bin and " +
		"test.bin), in its Python version (train and test) or as image files (train/apple/0001.png ...), from a " +
		"folder or a tar archive of either, plain or .gz"}

// LoadCIFAR100 reads CIFAR-100 with its 100 fine classes as [LoadCIFAR10] reads CIFAR-10: from a
// folder or a tar archive (plain or .gz) of its binary version or of images named train/CLASS/NAME
// and test/CLASS/NAME. The mean is (0.5071, 0.4865, 0.4409) and the std (0.2673, 0.2564, 0.2762);
// by default training shifts and mirrors them.
func LoadCIFAR100(from string, augment Augment) (*Set, error) { return cifar100.load(from, augment) }
