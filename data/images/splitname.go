package images

import (
	"path/filepath"
	"strings"
)

// splitNames maps names of folders and files to splits.
var splitNames = map[string]string{
	"train": trainSplit, "training": trainSplit,
	"val": testSplit, "validation": testSplit, "valid": testSplit, "test": testSplit, "testing": testSplit,
}

// preferred returns the test split to use: val has labels in ImageNet, test has none.
func preferred(a, b string) string {
	for _, name := range []string{"val", "validation", "valid", "test", "testing"} {
		if a == name || b == name {
			return name
		}
	}
	return a
}

// splitOfFile finds the split of a shard by a word in its name: train-00001-of-00257.parquet,
// imagenet-val-000.tar. A name without such a word is a training shard.
func splitOfFile(name string) (split, word string) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	for _, w := range words {
		if s, ok := splitNames[w]; ok {
			return s, w
		}
	}
	return trainSplit, trainSplit
}

// Splits assigns shards to splits by the words in their names: train, val, validation, test. If
// there are shards of val and of test, those of test are returned as left, since they often have no
// labels.
func Splits(files []string) (train, test, left []string) {
	best := ""
	for _, f := range files {
		if split, word := splitOfFile(filepath.Base(f)); split == testSplit {
			if best == "" {
				best = word
			}
			best = preferred(word, best)
		}
	}
	for _, f := range files {
		switch split, word := splitOfFile(filepath.Base(f)); {
		case split == trainSplit:
			train = append(train, f)
		case word == best:
			test = append(test, f)
		default:
			left = append(left, f)
		}
	}
	return train, test, left
}
