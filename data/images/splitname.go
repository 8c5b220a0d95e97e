package images

import (
	"path/filepath"
	"strings"
)

// splitNames are the names under which folders and files keep their pictures apart.
var splitNames = map[string]string{
	"train": trainSplit, "training": trainSplit,
	"val": testSplit, "validation": testSplit, "valid": testSplit, "test": testSplit, "testing": testSplit,
}

// preferred says which of two test splits is taken: ImageNet's pictures of test have no labels,
// those of val do.
func preferred(a, b string) string {
	for _, name := range []string{"val", "validation", "valid", "test", "testing"} {
		if a == name || b == name {
			return name
		}
	}
	return a
}

// splitOfFile tells by the words in its name which split a shard belongs to:
// train-00001-of-00257.parquet, imagenet-val-000.tar. A name without such a word is a shard for
// training.
func splitOfFile(name string) (split, word string) {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' })
	for _, w := range words {
		if s, ok := splitNames[w]; ok {
			return s, w
		}
	}
	return trainSplit, trainSplit
}

// Splits deals shards out by the words in their names: train, val, validation, test. Where there
// are shards of val and of test, those of test are left, since theirs are often pictures without
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
