package images

import (
	"cmp"
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

// splitBelow finds the split of a shard by its name, or else by the name of a folder below root.
func splitBelow(root, file string) (split, word string) {
	split, word = splitOfFile(filepath.Base(file))
	if rel, err := filepath.Rel(root, filepath.Dir(file)); err == nil && split == trainSplit && filepath.IsLocal(rel) {
		for dir := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
			if s, ok := splitNames[dir]; ok {
				split, word = s, dir
			}
		}
	}
	return split, word
}

// Splits assigns shards to splits by the words in their names: train, val, validation, test; or in
// the names of their folders below root. If there are shards of val and of test, the shards of test
// are returned as left, since they often have no labels.
func Splits(root string, files []string) (train, test, left []string) {
	best := ""
	for _, f := range files {
		if split, word := splitBelow(root, f); split == testSplit {
			best = preferred(word, cmp.Or(best, word))
		}
	}
	for _, f := range files {
		switch split, word := splitBelow(root, f); {
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
