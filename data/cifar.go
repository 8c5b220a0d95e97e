package data

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"fspda/data/images"
)

// The means and standard deviations of pixel/255 over the training images of CIFAR-10: red, green,
// blue.
var (
	cifarMean = []float32{0.4914, 0.4822, 0.4465}
	cifarStd  = []float32{0.2470, 0.2435, 0.2616}
)

// cifarClasses are the class names in label order, which is alphabetical.
var cifarClasses = []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}

const (
	cifarSide   = 32
	cifarPixels = cifarSide * cifarSide * 3
)

// cifarSet is CIFAR-10 or CIFAR-100. A record of the binary version has the labels, of which the
// last is the class, then red, green and blue, each row-major.
type cifarSet struct {
	name, title string
	other       string // the set with which it is confused
	classes     []string
	labels      []int               // the number of values of each label of a record
	files       map[string][]string // binary files by half
	python      map[string][]string // files of the Python version by half
	// pythonLabels are the names of the labels in these files.
	pythonLabels []string
	mean, std    []float32
	hint         string
}

func (c *cifarSet) record() int { return len(c.labels) + cifarPixels }

var cifar10 = &cifarSet{name: "cifar10", title: "CIFAR-10", other: "CIFAR-100", classes: cifarClasses,
	labels: []int{10}, files: map[string][]string{"train": {"data_batch_1.bin", "data_batch_2.bin",
		"data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}, "test": {"test_batch.bin"}},
	python: map[string][]string{"train": {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4",
		"data_batch_5"}, "test": {"test_batch"}}, pythonLabels: []string{"labels"}, mean: cifarMean,
	std: cifarStd, hint: "fspda data cifar10 fetches it to data/cifar10; CIFAR-10 is read in its binary version " +
		"(data_batch_1.bin to data_batch_5.bin and test_batch.bin), in its Python version (data_batch_1 to " +
		"data_batch_5 and test_batch) or as image files (train/airplane/0001.png ...), from a folder or a tar " +
		"archive of either, plain or .gz"}

// LoadCIFAR10 reads CIFAR-10 into memory, from a folder or a tar archive (plain or .gz) of its
// binary version, of its Python version, or of images named train/CLASS/NAME and test/CLASS/NAME.
// Examples are in the order of their file names. The mean is (0.4914, 0.4822, 0.4465) and the std
// (0.2470, 0.2435, 0.2616); by default training shifts and mirrors them.
//
// A missing file is an error that wraps [os.ErrNotExist]; a malformed one is a [FormatError].
func LoadCIFAR10(from string, augment Augment) (*Set, error) { return cifar10.load(from, augment) }

func (c *cifarSet) load(from string, augment Augment) (*Set, error) {
	if _, err := augment.resolve(CIFAR); err != nil { // checked before the files are read
		return nil, fmt.Errorf("data: set %s: %w", c.name, err)
	}
	files, err := readTree(from)
	if err != nil {
		return nil, fmt.Errorf("data: %s: %w: %s", c.title, err, c.hint)
	}
	slices.SortFunc(files, func(a, b treeFile) int { return strings.Compare(a.name, b.name) })
	var halves [2]Examples // training, test
	for i, name := range []string{"train", "test"} {
		if halves[i], err = c.half(from, name, files); err != nil {
			return nil, err
		}
	}
	s, err := NewChannels(c.name, []int{cifarSide, cifarSide, 3}, len(c.classes), c.mean, c.std, halves[0], halves[1])
	if err != nil {
		return nil, err
	}
	s.ClassNames = c.classes
	return s, s.augment(augment, CIFAR)
}

// half reads the training or the test images, from binary records if there are any, else from
// image files.
func (c *cifarSet) half(from, half string, files []treeFile) (Examples, error) {
	var records, pickled, decodable []treeFile
	for _, f := range files {
		base, dir := path.Base(f.name), path.Dir(f.name)
		switch {
		case slices.Contains(c.files[half], base):
			records = append(records, f)
		case slices.Contains(c.python[half], base):
			pickled = append(pickled, f)
		case path.Base(path.Dir(dir)) == half && slices.Contains(c.classes, path.Base(dir)) && imageName(base):
			decodable = append(decodable, f)
		}
	}
	read, names := c.content, c.files[half]
	if len(records) == 0 {
		records, read, names = pickled, c.unpickled, c.python[half]
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(records, func(f treeFile) bool { return path.Base(f.name) == name })
	})
	switch {
	case len(records) > 0 && len(missing) > 0:
		return Examples{}, fmt.Errorf("data: %s: %s has no %s: %w: %s", c.title, from, strings.Join(missing, ", "),
			os.ErrNotExist, c.hint)
	case len(records) > 0:
		return c.records(records, read)
	case len(decodable) > 0:
		return c.images(from, half, decodable)
	}
	return Examples{}, fmt.Errorf("data: %s: %s has no %s images: %w: %s", c.title, from, half, os.ErrNotExist, c.hint)
}

func (c *cifarSet) content(f treeFile) ([]byte, error) {
	content, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("data: %s: %w", c.title, err)
	}
	return content, nil
}

// unpickled reads a file of the Python version as one of the binary version.
func (c *cifarSet) unpickled(f treeFile) ([]byte, error) {
	content, err := c.content(f)
	if err != nil {
		return nil, err
	}
	records, err := c.pythonRecords(content)
	if err != nil {
		return nil, &FormatError{Path: f.path, Got: err.Error(), Want: "a file of the Python version of " + c.title,
			Hint: "the file is cut off or damaged; fetch it again", Err: err}
	}
	return records, nil
}

// records reads files, which read returns in the form of the binary version.
func (c *cifarSet) records(files []treeFile, read func(treeFile) ([]byte, error)) (Examples, error) {
	var e Examples
	for _, f := range files {
		content, err := read(f)
		if err != nil {
			return e, err
		}
		if len(content) == 0 || len(content)%c.record() != 0 {
			return e, &FormatError{Path: f.path, Got: fmt.Sprintf("%d bytes", len(content)),
				Want: fmt.Sprintf("a multiple of %d, the size of a record", c.record()),
				Hint: "the file is cut off, or of " + c.other + "; fetch it again"}
		}
		for record := range slices.Chunk(content, c.record()) {
			for i, n := range c.labels {
				if int(record[i]) >= n {
					return e, &FormatError{Path: f.path, Got: fmt.Sprintf("label %d of record %d", record[i],
						len(e.Labels)), Want: fmt.Sprintf("0 to %d", n-1),
						Hint: "the file is damaged or not a part of " +
							c.title}
				}
			}
			e.Labels = append(e.Labels, int32(record[len(c.labels)-1]))
			plane := record[len(c.labels):]
			for i := range cifarSide * cifarSide {
				e.Pixels = append(e.Pixels, plane[i], plane[i+cifarSide*cifarSide], plane[i+2*cifarSide*cifarSide])
			}
		}
	}
	e.Pixels = compact(e.Pixels)
	return e, nil
}

// images decodes image files on all cores.
func (c *cifarSet) images(from, half string, files []treeFile) (Examples, error) {
	e := Examples{Pixels: newPixels(len(files) * cifarPixels), Labels: make([]int32, len(files))}
	count := make([]int, len(c.classes))
	for i, f := range files {
		e.Labels[i] = int32(slices.Index(c.classes, path.Base(path.Dir(f.name))))
		count[e.Labels[i]]++
	}
	if none := slices.Index(count, 0); none >= 0 {
		return e, &FormatError{Path: from, Got: fmt.Sprintf("no %s image of class %s", half, c.classes[none]),
			Want: fmt.Sprintf("images of all %d classes", len(c.classes)),
			Hint: "parts of the set are missing: unpack or fetch it again"}
	}
	return e, parallel(runtime.GOMAXPROCS(0), len(files), func(i int) error {
		return c.decode(e.Pixels[i*cifarPixels:][:cifarPixels], files[i])
	})
}

func (c *cifarSet) decode(dst []uint8, f treeFile) error {
	content, err := f.read()
	if err != nil {
		return fmt.Errorf("data: %s: %w", c.title, err)
	}
	decoded := images.RGB{Pix: dst}
	err = images.Decode(&decoded, content, cifarSide*cifarSide)
	if large := (*images.TooLargeError)(nil); errors.As(err, &large) {
		decoded.W, decoded.H, err = large.W, large.H, nil
	}
	switch {
	case err != nil:
		return &FormatError{Path: f.path, Got: err.Error(), Want: "a JPEG or PNG image",
			Hint: "the file is damaged; fetch it again", Err: err}
	case decoded.W != cifarSide || decoded.H != cifarSide:
		return &FormatError{Path: f.path, Got: fmt.Sprintf("an image of %d×%d", decoded.W, decoded.H), Want: "32×32",
			Hint: "this is not a " + c.title + " image"}
	}
	return nil
}
