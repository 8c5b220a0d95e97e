package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The mean and standard deviation of pixel/255 over the training images of MNIST.
const (
	mnistMean = 0.1307
	mnistStd  = 0.3081
)

// idxFiles are the names of the four files of MNIST and sets of the same form.
const idxFiles = "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, " +
	"plain or .gz"

// idxSet is a set in the form of MNIST.
type idxSet struct {
	name, title string
	mean, std   float32 // statistics of pixel/255 over the training images
	hint        string
}

var (
	mnist = idxSet{"mnist", "MNIST", mnistMean, mnistStd, "fspda data mnist fetches it to data/mnist; or name a " +
		"folder with its four files in the IDX format (" + idxFiles + "), or train on the built-in set synthetic, " +
		"which needs no files"}
	fashion = idxSet{"fashion-mnist", "Fashion-MNIST", 0.2860, 0.3530, "fspda data fashion-mnist fetches it to " +
		"data/fashion-mnist; or name a folder with its four files in the IDX format (" + idxFiles + ")"}
)

// fashionClasses are the class names of Fashion-MNIST in label order.
var fashionClasses = []string{"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker",
	"bag", "ankle boot"}

// LoadMNIST reads MNIST, or a set of the same form with 10 classes, from the four files of a
// folder. Each may be plain or end in .gz and be spelled train-images-idx3-ubyte or
// train-images.idx3-ubyte. The images are normalized with mean 0.1307 and std 0.3081.
//
// A missing folder or file is an error that lists the expected names and wraps [os.ErrNotExist]; a
// malformed file is a [FormatError].
func LoadMNIST(dir string) (*Set, error) { return mnist.load(dir) }

// LoadFashionMNIST reads Fashion-MNIST as LoadMNIST reads MNIST, whose form it has. The images are
// normalized with mean 0.2860 and std 0.3530.
func LoadFashionMNIST(dir string) (*Set, error) {
	s, err := fashion.load(dir)
	if err != nil {
		return nil, err
	}
	s.ClassNames = fashionClasses
	return s, nil
}

func (f idxSet) load(dir string) (*Set, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("data: %s folder: %w: %s", f.title, err, f.hint)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("data: %s folder %s is a file: %s", f.title, dir, f.hint)
	}
	train, shape, err := f.readExamples(dir, "train")
	if err != nil {
		return nil, err
	}
	test, testShape, err := f.readExamples(dir, "t10k")
	if err != nil {
		return nil, err
	}
	if shape != testShape {
		return nil, &FormatError{Path: filepath.Join(dir, "t10k-images"), Got: fmt.Sprintf("images of %d×%d",
			testShape[0], testShape[1]), Want: fmt.Sprintf("%d×%d, as in the training images", shape[0], shape[1]),
			Hint: "the files come from different sets"}
	}
	return New(f.name, shape[:], 10, f.mean, f.std, train, test)
}

// readExamples reads the images and labels of one half of the set; prefix is train or t10k.
func (f idxSet) readExamples(dir, prefix string) (Examples, [2]int, error) {
	fail := func(err error) (Examples, [2]int, error) { return Examples{}, [2]int{}, err }
	imagePath, err := f.findIDX(dir, prefix+"-images", "idx3-ubyte")
	if err != nil {
		return fail(err)
	}
	labelPath, err := f.findIDX(dir, prefix+"-labels", "idx1-ubyte")
	if err != nil {
		return fail(err)
	}
	images, err := readIDX(imagePath, idxImages)
	if err != nil {
		return fail(err)
	}
	labels, err := readIDX(labelPath, idxLabels)
	if err != nil {
		return fail(err)
	}
	if images.Dims[0] != labels.Dims[0] {
		return fail(&FormatError{Path: labelPath, Got: fmt.Sprintf("%d labels", labels.Dims[0]),
			Want: fmt.Sprintf("%d, one for each image of %s",
				images.Dims[0], filepath.Base(imagePath)), Hint: "the two files come from different sets"})
	}
	e := Examples{Pixels: compact(images.Data), Labels: make([]int32, len(labels.Data))}
	for i, y := range labels.Data {
		if y > 9 {
			return fail(&FormatError{Path: labelPath, Got: fmt.Sprintf("label %d of example %d", y, i), Want: "0 to 9",
				Hint: "this reader supports only sets with ten classes"})
		}
		e.Labels[i] = int32(y)
	}
	return e, [2]int{images.Dims[1], images.Dims[2]}, nil
}

// findIDX returns the path of the first spelling of a file that exists.
func (f idxSet) findIDX(dir, stem, suffix string) (string, error) {
	var names []string
	for _, joint := range []string{"-", "."} {
		for _, end := range []string{"", ".gz"} {
			names = append(names, stem+joint+suffix+end)
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		switch {
		case err == nil && info.Mode().IsRegular():
			return path, nil
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return "", fmt.Errorf("data: %w", err)
		}
	}
	return "", fmt.Errorf("data: folder %s has no %s: looked for %s: %w: %s", dir, stem, strings.Join(names, ", "),
		os.ErrNotExist, f.hint)
}
