package images

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"fspda/internal/bounded"
)

// labelFiles are the known names of files with the classes of ImageNet's validation images, most
// reliable first.
var labelFiles = []string{
	"LOC_val_solution.csv",                       // Kaggle: name, wnid and boxes
	"imagenet_2012_validation_synset_labels.txt", // a wnid per image, in order
	"val.txt", "val_labels.txt", "ILSVRC2012_val.txt", // name and wnid or label
	// the devkit's: a number per image, in the devkit's own order of classes
	"ILSVRC2012_validation_ground_truth.txt",
	"data/ILSVRC2012_validation_ground_truth.txt", // its path in the unpacked devkit
	"ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt",
}

// devkitOrder is the file that maps the devkit's numbers to classes: a wnid per line, number 1
// first.
const devkitOrder = "synsets.txt"

func findLabels(dir, given string) (string, error) {
	if given != "" {
		if _, err := os.Stat(given); err != nil {
			return "", fmt.Errorf("images: the labels of validation pictures: %w", err)
		}
		return given, nil
	}
	for _, name := range labelFiles {
		if p := filepath.Join(dir, filepath.FromSlash(name)); isFile(p) {
			return p, nil
		}
	}
	return "", &FormatError{Path: dir, Got: imageNetVal + " without a file of its labels",
		Want: "in the same folder one of " + strings.Join(labelFiles[:6], ", "),
		Hint: `any list of lines "NAME WNID" will do as val.txt; without validation pictures, move the tar away`}
}

// labelValidation sets the class of each image from a list: lines "name class" or, in the order of
// names, "class". A class is a wnid, or a number: with a name the index of its wnid in the sorted
// list of classes, from 0; without a name the devkit's number, from 1.
func labelValidation(all []picture, list, dir string, classes map[string]int) error {
	lines, err := readLines(list)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b picture) int { return strings.Compare(a.name, b.name) })
	if len(lines) > 0 && len(lines[0]) > 1 {
		return labelByName(all, list, lines, slices.Sorted(maps.Keys(classes)))
	}
	if len(lines) != len(all) {
		return &FormatError{Path: list, Got: fmt.Sprintf("%d lines", len(lines)),
			Want: fmt.Sprintf("%d, one for each validation picture", len(all))}
	}
	var order []string // order of the devkit, read on demand
	for i := range all {
		class := lines[i][0]
		if n, err := strconv.Atoi(class); err == nil {
			if order == nil {
				if order, err = readOrder(list, dir); err != nil {
					return err
				}
			}
			if n < 1 || n > len(order) {
				return &FormatError{Path: list, Got: fmt.Sprintf("class %d in line %d", n, i+1),
					Want: fmt.Sprintf("1 to %d", len(order))}
			}
			class = order[n-1]
		}
		all[i].class = class
	}
	return nil
}

func labelByName(all []picture, list string, lines [][]string, sorted []string) error {
	byName := make(map[string]string, len(lines))
	for i, f := range lines {
		if len(f) < 2 {
			return &FormatError{Path: list, Got: fmt.Sprintf("line %d with %d words", i+1, len(f)),
				Want: "a name and a class"}
		}
		class := f[1]
		if n, err := strconv.Atoi(class); err == nil {
			if n < 0 || n >= len(sorted) {
				return &FormatError{Path: list, Got: fmt.Sprintf("class %d in line %d", n, i+1),
					Want: fmt.Sprintf("0 to %d", len(sorted)-1),
					Hint: "numbers are indices into the sorted list of the training classes; use wnids where there " +
						"is none"}
			}
			class = sorted[n]
		}
		byName[stem(f[0])] = class
	}
	for i := range all {
		class, ok := byName[stem(all[i].name)]
		if !ok {
			return &FormatError{Path: list, Got: "no line for " + all[i].name, Want: "one for each validation picture"}
		}
		all[i].class = class
	}
	return nil
}

// stem is a name without folders and extension.
func stem(name string) string {
	base := path.Base(name)
	return strings.TrimSuffix(base, path.Ext(base))
}

func readOrder(list, dir string) ([]string, error) {
	for _, d := range []string{filepath.Dir(list), dir} {
		lines, err := readLines(filepath.Join(d, devkitOrder))
		if err != nil {
			continue
		}
		var order []string
		for _, f := range lines {
			order = append(order, f[0])
		}
		return order, nil
	}
	return nil, &FormatError{Path: list, Got: "numbers of the devkit",
		Want: devkitOrder + " in the same folder, with the wnid of number 1, 2, … in each line",
		Hint: "the devkit keeps them in data/meta.mat; a list with wnids, such as LOC_val_solution.csv, needs no " +
			"such file"}
}

// readLines returns the words of each line, without empty lines and headings. Words are separated
// by commas and white space.
func readLines(file string) ([][]string, error) {
	f, err := bounded.Open(file)
	if err != nil {
		return nil, fmt.Errorf("images: %w", err)
	}
	defer f.Close() // read only: an error loses no data
	var lines [][]string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		words := strings.FieldsFunc(s.Text(), func(r rune) bool {
			return r == ',' || r == ' ' || r == '\t' || r == '\r'
		})
		if len(words) == 0 || words[0] == "ImageId" || strings.HasPrefix(words[0], "#") {
			continue
		}
		lines = append(lines, words)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("images: reading %s: %w", file, err)
	}
	return lines, nil
}
