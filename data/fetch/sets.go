package fetch

// Set lists the files of a data set.
type Set struct {
	Name string
	// base addresses, tried in order; file names are appended
	Bases  []string
	Files  []File
	Commit string // the commit of a [Repository]
	token  string // an account's token; "": none
}

// MNIST is the four files of LeCun, Cortes and Burges.
func MNIST() Set {
	return Set{
		Name: "mnist",
		Bases: []string{"https://ossci-datasets.s3.amazonaws.com/mnist/",
			"https://storage.googleapis.com/cvdf-datasets/mnist/"},
		Files: []File{
			{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
				"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db", "", ""},
			{"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
				"65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5", "", ""},
			{"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
				"0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7", "", ""},
			{"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
				"ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2", "", ""},
		},
	}
}

// CIFAR10 is the binary version of Krizhevsky's CIFAR-10.
func CIFAR10() Set {
	return Set{
		Name:  "cifar10",
		Bases: []string{"https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"},
		Files: []File{{"cifar-10-binary.tar.gz", 170052171,
			"c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", "", "", ""}},
	}
}

// CIFAR100 is the binary version of Krizhevsky's CIFAR-100.
func CIFAR100() Set {
	return Set{
		Name:  "cifar100",
		Bases: CIFAR10().Bases,
		Files: []File{{"cifar-100-binary.tar.gz", 168513733,
			"58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec", "", "", ""}},
	}
}

// FashionMNIST is the four files of Xiao, Rasul and Vollgraf. Its authors publish their MD5.
func FashionMNIST() Set {
	return Set{
		Name: "fashion-mnist",
		Bases: []string{"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
			"https://storage.googleapis.com/tensorflow/tf-keras-datasets/"},
		Files: []File{
			{"train-images-idx3-ubyte.gz", 26421880, "", "", "8d4fb7e6c68d591d4c3dfef9ec88bf0d", ""},
			{"train-labels-idx1-ubyte.gz", 29515, "", "", "25c81989df183df01b3e8a0aad5dffbe", ""},
			{"t10k-images-idx3-ubyte.gz", 4422102, "", "", "bef4ecab320f06d8554ea6380940ec79", ""},
			{"t10k-labels-idx1-ubyte.gz", 5148, "", "", "bb300cfdad3c16e7a12a480ee83cd310", ""},
		},
	}
}

// ImageNet is the original files of ILSVRC 2012, which require an account. Only their MD5 is
// published.
func ImageNet() Set {
	return Set{
		Name: "imagenet",
		Files: []File{
			{"ILSVRC2012_img_train.tar", 147897477120, "", "", "1d675b47d978889d74fa0da5fadfb00e", ""},
			{"ILSVRC2012_img_val.tar", 6744924160, "", "", "29b22e2961454d5413ddabcf34fc5622", ""},
		},
	}
}
