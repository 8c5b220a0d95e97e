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
	// of the binary version: the label, then red, green and blue, each row-major
	cifarRecord = 1 + cifarPixels

	cifarHint = "fspda data cifar10 fetches it to data/cifar10; CIFAR-10 is read in its " +
		"binary version (data_batch_1.bin to data_batch_5.bin and test_batch.bin) " +
		"or as image files (train/airplane/0001.png ...), from a folder or a tar archive of either, plain or .gz"
)

// LoadCIFAR10 reads CIFAR-10 into memory, from a folder or a tar archive (plain or .gz) of its
// binary version or of images named train/CLASS/NAME and test/CLASS/NAME. Examples are in the order
// of their file names. The mean is (0.4914, 0.4822, 0.4465) and the std (0.2470, 0.2435, 0.2616);
// by default training shifts and mirrors them.
//
// A missing file is an error that wraps [os.ErrNotExist]; a malformed one is a [FormatError].
func LoadCIFAR10(from string, augment Augment) (*Set, error) {
	if _, err := augment.resolve(CIFAR); err != nil { // checked before the files are read
		return nil, fmt.Errorf("data: set cifar10: %w", err)
	}
	files, err := readTree(from)
	if err != nil {
		return nil, fmt.Errorf("data: CIFAR-10: %w: %s", err, cifarHint)
	}
	slices.SortFunc(files, func(a, b treeFile) int { return strings.Compare(a.name, b.name) })
	var halves [2]Examples // training, test
	for i, name := range []string{"train", "test"} {
		if halves[i], err = cifarHalf(from, name, files); err != nil {
			return nil, err
		}
	}
	s, err := NewChannels("cifar10", []int{cifarSide, cifarSide, 3}, len(cifarClasses), cifarMean, cifarStd, halves[0],
		halves[1])
	if err != nil {
		return nil, err
	}
	return s, s.augment(augment, CIFAR)
}

// cifarHalf reads the training or the test images, from binary records if there are any, else from
// image files.
func cifarHalf(from, half string, files []treeFile) (Examples, error) {
	var records, decodable []treeFile
	for _, f := range files {
		base, dir := path.Base(f.name), path.Dir(f.name)
		switch {
		case strings.HasSuffix(base, ".bin") && strings.HasPrefix(base, map[string]string{"train": "data_batch_",
			"test": "test_batch"}[half]):
			records = append(records, f)
		case path.Base(path.Dir(dir)) == half && slices.Contains(cifarClasses, path.Base(dir)) && imageName(base):
			decodable = append(decodable, f)
		}
	}
	switch {
	case len(records) > 0:
		return cifarRecords(records)
	case len(decodable) > 0:
		return cifarImages(from, half, decodable)
	}
	return Examples{}, fmt.Errorf("data: CIFAR-10: %s has no %s images: %w: %s", from, half, os.ErrNotExist, cifarHint)
}

// cifarRecords reads files of the binary version.
func cifarRecords(files []treeFile) (Examples, error) {
	var e Examples
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return e, fmt.Errorf("data: CIFAR-10: %w", err)
		}
		if len(content) == 0 || len(content)%cifarRecord != 0 {
			return e, &FormatError{Path: f.path, Got: fmt.Sprintf("%d bytes", len(content)),
				Want: fmt.Sprintf("a multiple of %d, the size of a record",
					cifarRecord), Hint: "the file is cut off, or of CIFAR-100; fetch it again"}
		}
		for record := range slices.Chunk(content, cifarRecord) {
			if record[0] >= 10 {
				return e, &FormatError{Path: f.path, Got: fmt.Sprintf("label %d of record %d",
					record[0], len(e.Labels)), Want: "0 to 9", Hint: "the file is damaged or not a part of CIFAR-10"}
			}
			e.Labels = append(e.Labels, int32(record[0]))
			plane := record[1:]
			for i := range cifarSide * cifarSide {
				e.Pixels = append(e.Pixels, plane[i], plane[i+cifarSide*cifarSide], plane[i+2*cifarSide*cifarSide])
			}
		}
	}
	e.Pixels = compact(e.Pixels)
	return e, nil
}

// cifarImages decodes image files on all cores.
func cifarImages(from, half string, files []treeFile) (Examples, error) {
	e := Examples{Pixels: newPixels(len(files) * cifarPixels), Labels: make([]int32, len(files))}
	count := make([]int, len(cifarClasses))
	for i, f := range files {
		e.Labels[i] = int32(slices.Index(cifarClasses, path.Base(path.Dir(f.name))))
		count[e.Labels[i]]++
	}
	if c := slices.Index(count, 0); c >= 0 {
		return e, &FormatError{Path: from, Got: fmt.Sprintf("no %s image of class %s", half, cifarClasses[c]),
			Want: "images of all ten classes", Hint: "parts of the set are missing: unpack or fetch it again"}
	}
	return e, parallel(runtime.GOMAXPROCS(0), len(files), func(i int) error {
		return decodeCIFAR(e.Pixels[i*cifarPixels:][:cifarPixels], files[i])
	})
}

func decodeCIFAR(dst []uint8, f treeFile) error {
	content, err := f.read()
	if err != nil {
		return fmt.Errorf("data: CIFAR-10: %w", err)
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
			Hint: "this is not a CIFAR-10 image"}
	}
	return nil
}
