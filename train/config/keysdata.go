package config

import (
	"fmt"
	"strings"

	"fspda/data"
	"fspda/model"
	"fspda/train/setting"
)

// DataKeys choose the data set.
type DataKeys struct {
	Data      string `key:"data"`
	DataDir   string `key:"data_dir"`
	DataTrain int    `key:"data_train"`
	DataTest  int    `key:"data_test"`
}

var dataKeys = []setting.Key{
	{Name: "data", Topic: "data", Default: "synthetic", Names: data.Names,
		Help: "data set: synthetic (drawn digits, needs no download), synthetic-images (drawn images), " +
			"synthetic-text (drawn text), mnist, cifar10, cifar100, fashion-mnist, imagenet, folder (any labelled " +
			"images), writers (images in a folder for each writer), text, or external, which the program of " +
			"command loads"},
	{Name: "data_dir", Topic: "data", Default: "",
		Needs: []setting.Need{needs("a data set that is read from files: name it with data",
			func(c Config) bool { return !strings.HasPrefix(c.Data, "synthetic") })},
		Resume: setting.Recorded,
		Help: "folder of the data set's files; for images also an archive, shards or a packed set; for text also a " +
			".txt file"},
	{Name: "data_train", Topic: "data", Default: 10000, Whole: true, Needs: []setting.Need{drawnData},
		Help: "training examples of a synthetic set; of synthetic-text, characters"},
	{Name: "data_test", Topic: "data", Default: 2000, Whole: true, Needs: []setting.Need{drawnData},
		Help: "test examples of a synthetic set; of synthetic-text, characters"},
}

// DecodingKeys say how the examples of a data set are read and varied.
type DecodingKeys struct {
	Augment   string  `key:"augment"`
	Policy    string  `key:"auto_augment"`
	Erase     float64 `key:"random_erase"`
	Repeat    int     `key:"repeat_augment"`
	Mixup     float64 `key:"mixup"`
	Cutmix    float64 `key:"cutmix"`
	Crop      int     `key:"crop"`
	ImageSize int     `key:"image_size"`
	JPEG      string  `key:"jpeg"`
	OnBad     string  `key:"on_bad"`

	ImageColumn string `key:"image_column"`
	LabelColumn string `key:"label_column"`
	Tokenizer   string `key:"tokenizer"`

	Recipe string `key:"recipe"`
}

var decodingKeys = []setting.Key{
	{Name: "augment", Topic: "data", Default: auto, Names: data.Augments,
		Needs: []setting.Need{needsRun("a data set of pictures",
			func(s *Setup, c Config) bool { return !s.readsText(c) })},
		Help: "how training varies its examples: auto (as is usual for the set), none, cifar (moved by up to 4 " +
			"pixels, mirrored), imagenet (a random box, scaled to the crop, mirrored)"},
	{Name: "auto_augment", Topic: "data", Default: "none", Names: data.Policies, Forms: true, Check: checkPolicy,
		Needs: []setting.Need{ofPictures}, Since: "0.2.0",
		Help: "random changes of the shape and the colours of training pictures: none, randaugment(2,9) (two of 14 " +
			"operations with magnitude 9 of 30, also randaugment), or trivialaugment (one, of any magnitude)"},
	{Name: "random_erase", Topic: "data", Range: "[0, 1]", Want: "a probability from 0 to 1", Since: "0.2.0",
		Needs: []setting.Need{ofPictures},
		Help:  "probability that a box of a training picture, 2 to 33 % of its area, becomes the mean colour"},
	{Name: "repeat_augment", Topic: "data", Default: 1, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Since: "0.2.0", Needs: []setting.Need{needsRun("a data set of pictures with sampling epochs",
			func(s *Setup, c Config) bool {
				return !s.readsText(c) && len(s.Set.Shape) > 1 && c.Sampling == string(data.Epochs)
			})},
		Help: "appearances of a training picture in an epoch, beside each other and augmented anew; an epoch keeps " +
			"its length and takes as many fewer pictures"},
	{Name: "mixup", Topic: "data", Range: "[0, 4]", Want: wantMix, Check: zeroOr(data.LeastMix), Since: "0.2.0",
		Needs: []setting.Need{ofPictures, lossHere},
		Help: "parameter of the Beta distribution of the weights with which training averages pictures, and their " +
			"classes, in pairs, such as 0.2; 0 leaves them; with cutmix too, each batch takes one of both"},
	{Name: "cutmix", Topic: "data", Range: "[0, 4]", Want: wantMix, Check: zeroOr(data.LeastMix), Since: "0.2.0",
		Needs: []setting.Need{ofPictures, lossHere},
		Help: "parameter of the Beta distribution of the share of a training picture, such as 1, that stays when a " +
			"box of another picture replaces the rest; 0 leaves them"},
	{Name: "crop", Topic: "data", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Needs: []setting.Need{imagesOfAnySize},
		Help:  "side of the part of an image that the network sees, in pixels; 0 is 224"},
	{Name: "image_size", Topic: "data", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Needs: []setting.Need{imagesOfAnySize},
		Help:  "shorter side to which evaluation scales an image before it takes the center; 0 is 8/7 of crop"},
	{Name: "jpeg", Topic: "data", Default: auto, Names: data.Decoders, Needs: []setting.Need{imagesOfAnySize},
		Resume: setting.Recorded,
		Help: "what decodes JPEG images: libjpeg (its pixels, on every machine; also auto and turbo), or go " +
			"(image/jpeg, slower); a run can be resumed only with the same decoder"},
	{Name: "on_bad", Topic: "data", Default: string(data.Fail), Choices: []string{string(data.Fail), string(data.Skip)},
		Needs: []setting.Need{imagesOfAnySize},
		Help:  "what happens if an image cannot be read: fail, or skip (the next one of the batch takes its place)"},
	{Name: "image_column", Topic: "data", Default: "", Since: "0.2.0",
		Help: "images in Parquet or Arrow tables: their column; empty finds usual names such as image"},
	{Name: "label_column", Topic: "data", Default: "", Since: "0.2.0",
		Help: "images in Parquet or Arrow tables: the column of their labels; empty finds usual names such as label"},
	{Name: "tokenizer", Topic: "data", Default: auto, Names: orAuto(data.Tokenizers),
		Needs: []setting.Need{setting.Is("data", "text")}, Since: "0.2.0",
		Help: "text: char (its characters), byte, gpt2 (the byte pairs of GPT-2), or auto (as the files of tokens " +
			"say; char for .txt files)"},
	{Name: "recipe", Topic: "run", Default: recipeNone, Names: Recipes, Resume: setting.Recorded,
		Needs: []setting.Need{ofPictures}, Since: "0.2.0",
		Help: "values of other keys that belong together: none, resnet50-2021 (torchvision's for its ResNet-50 of " +
			"2021), or cifar-2021 (the same means for CIFAR); keys that are set keep theirs; --dry-run lists all"},
}

// ofPictures is the condition that examples are pictures.
var ofPictures = needsRun("a data set of pictures",
	func(s *Setup, c Config) bool { return !s.readsText(c) && len(s.Set.Shape) > 1 })

// lossHere is the condition that this program computes the loss.
var lossHere = needs("a model of this program: an external one computes its own loss, and can mix its examples",
	func(c Config) bool { return c.Model != model.ExternalName })

var wantMix = fmt.Sprintf("0, or %v to %v", data.LeastMix, data.MostMix)

// checkPolicy refuses texts that data.Policies does not list.
func checkPolicy(key string, value any) error {
	if err := data.CheckPolicy(value.(string)); err != nil {
		return Invalid(key, value, "%v", err)
	}
	return nil
}

// checkMixed refuses a model whose loss does not know examples of two classes, where there are some.
func (c Config) checkMixed(d model.Description) error {
	if (c.Mixup > 0 || c.Cutmix > 0) && !d.Mixed {
		return Invalid("mixup or cutmix", fmt.Sprintf("%v, %v", c.Mixup, c.Cutmix), "the model's loss knows examples "+
			"of one class: make its network with WithMixed")
	}
	return nil
}

// BatchKeys choose how the data is split and sampled.
type BatchKeys struct {
	Partition string `key:"partition"`
	Objective string `key:"objective"`
	Batch     int    `key:"batch"`
	Accum     int    `key:"accumulate"`
	Sampling  string `key:"sampling"`
	Seed      uint64 `key:"seed"`
}

var batchKeys = []setting.Key{
	{Name: "partition", Topic: "data", Default: "dirichlet-equal(0.3)", Names: data.PartitionForms, Forms: true,
		Help: "data split: shuffled, sorted, by-class, by-writer, contiguous (of text), dirichlet(0.3), " +
			"dirichlet-equal(0.3), file(PATH)"},
	{Name: "objective", Topic: "data", Default: "agents", Choices: []string{"agents", "samples"},
		Help: "weights of the agents in the objective: agents (equal) or samples (by shard size)"},
	{Name: "batch", Topic: "data", Default: 64, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Needs: []setting.Need{needs("sampling epochs or iid",
			func(c Config) bool { return c.Sampling != "full" })},
		Help: "examples per agent and iteration"},
	{Name: "accumulate", Topic: "data", Default: 1, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Needs: []setting.Need{needsRun("a batch of at least as many examples",
			func(s *Setup, c Config) bool { return c.Accum <= s.batch() })},
		Help: "parts of a batch whose gradients are computed one after the other, to save memory; batch norm sees " +
			"one part at a time"},
	{Name: "sampling", Topic: "data", Default: string(data.Epochs),
		Choices: []string{string(data.Epochs), string(data.IID), string(data.Full)},
		Help:    "epochs (without replacement), iid (with) or full (the whole shard)"},
	{Name: "seed", Topic: "run", Default: uint64(1),
		Help: "seed of every random choice"},
}
