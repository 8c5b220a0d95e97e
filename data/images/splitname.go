package images

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// splitNames maps words in the names of folders and files to splits.
var splitNames = map[string]string{
	"train": trainSplit, "training": trainSplit, "trn": trainSplit,
	"val": testSplit, "validation": testSplit, "valid": testSplit, "validate": testSplit, "dev": testSplit,
	"development": testSplit, "eval": testSplit, "evaluation": testSplit, "holdout": testSplit, "test": testSplit,
	"testing": testSplit, "tst": testSplit,
}

// preference lists the test splits, the one to use first: val has labels in ImageNet, test has none.
var preference = []string{"val", "validation", "valid", "validate", "dev", "development", "eval", "evaluation",
	"holdout", "test", "testing", "tst"}

// besides are words that a name of a split may have beside the word of the split.
var besides = []string{"", "set", "sets", "data", "dataset", "image", "images", "img", "imgs", "picture", "pictures",
	"photo", "photos", "sample", "samples", "split", "folder", "dir", "jpg", "jpeg", "png", "tar", "zip", "parquet"}

// splitName is what a name says about a split.
type splitName struct {
	split string // trainSplit, testSplit, or "" if the name has no word of a split, or several
	word  string // word of the split, in lower case
	rest  string // other words; "" if the name says nothing else, as in Train, test_set or train2017
}

// preferred returns the test split to use.
func preferred(a, b string) string {
	if slices.Index(preference, b) >= 0 && slices.Index(preference, b) < slices.Index(preference, a) {
		return b
	}
	return a
}

// wordsOf divides a name into words of letters, in lower case. A capital after a small letter
// begins a word, as in TrainSet.
func wordsOf(name string) []string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
}

// splitWord returns the word of a split that a word is, or begins with: trainset.
func splitWord(word string) string {
	for _, end := range besides {
		if head, ok := strings.CutSuffix(word, end); ok && splitNames[head] != "" {
			return head
		}
	}
	return ""
}

func parseSplit(name string) (s splitName) {
	var rest []string
	for _, w := range wordsOf(name) {
		switch found := splitWord(w); {
		case found != "" && s.word != "":
			return splitName{rest: name}
		case found != "":
			s.split, s.word = splitNames[found], found
		case !slices.Contains(besides, w):
			rest = append(rest, w)
		}
	}
	s.rest = strings.Join(rest, " ")
	return s
}

// strict reports whether a name says that a folder is a split, and nothing else.
func (s splitName) strict() bool { return s.split != "" && s.rest == "" }

// IsSplit reports whether a name says that a folder is a split for training or testing.
func IsSplit(name string) bool { return parseSplit(name).strict() }

// splitOfFile finds the split of a shard by the first such word in its name:
// train-00001-of-00257.parquet, imagenet-val-000.tar. A name without such a word has split "".
func splitOfFile(name string) (split, word string) {
	for _, w := range wordsOf(name) {
		if found := splitWord(w); found != "" {
			return splitNames[found], found
		}
	}
	return "", ""
}

// splitBelow finds the split of a shard by its name, or else by the name of a folder below root.
func splitBelow(root, file string) (split, word string) {
	split, word = splitOfFile(filepath.Base(file))
	if rel, err := filepath.Rel(root, filepath.Dir(file)); err == nil && split != testSplit && filepath.IsLocal(rel) {
		for dir := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
			if s := parseSplit(dir); s.strict() {
				split, word = s.split, s.word
			}
		}
	}
	return cmp.Or(split, trainSplit), cmp.Or(word, trainSplit)
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
