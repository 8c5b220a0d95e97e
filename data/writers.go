package data

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"fspda/data/images"
)

const writersHint = "a set of writers is a folder, or a tar archive of one (plain or .gz), with image files named " +
	"train/WRITER/CLASS/NAME.png and test/WRITER/CLASS/NAME.png (or .jpg), all of one size"

// writers says who wrote each training example.
type writers struct {
	names []string
	of    []int32 // writer of each training example
}

type writerFile struct {
	treeFile
	writer, class string
}

// LoadWriters reads images that are grouped by who wrote them, such as FEMNIST, into memory: from a
// folder or a tar archive (plain or .gz) of images named train/WRITER/CLASS/NAME and
// test/WRITER/CLASS/NAME, JPEG or PNG and all of one size. Classes are the names of the training
// images' CLASS folders, sorted; examples are in the order of their file names. Images that are all
// grey have the shape [H W], others [H W 3]. Pixels are normalized by the mean and the standard
// deviation of the training images, rounded to four digits. The partition by-writer gives agents
// whole writers. Without test images the training images are the test set, which a note says.
//
// A missing file is an error that wraps [os.ErrNotExist]; a malformed one is a [FormatError].
func LoadWriters(from string) (*Set, error) {
	files, err := readTree(from)
	if err != nil {
		return nil, fmt.Errorf("data: writers: %w: %s", err, writersHint)
	}
	train, test := writerFiles(files, "train"), writerFiles(files, "test")
	if len(train) == 0 {
		return nil, fmt.Errorf("data: writers: %s has no training images: %w: %s", from, os.ErrNotExist, writersHint)
	}
	var notes []string
	if len(test) == 0 {
		test = train
		notes = append(notes, from+" has no test images: the training images are used instead, so accuracies are "+
			"training accuracies")
	}
	classes, names := namesOf(train, func(f writerFile) string { return f.class }),
		namesOf(train, func(f writerFile) string { return f.writer })
	d, err := newWriterImages(train[0])
	if err != nil {
		return nil, err
	}
	var halves [2]Examples
	for i, files := range [][]writerFile{train, test} {
		if halves[i], err = d.read(files, classes); err != nil {
			return nil, err
		}
	}
	s, err := d.set(len(classes), halves)
	if err != nil {
		return nil, err
	}
	s.Notes, s.ClassNames, s.writers = notes, classes, &writers{names: names}
	for _, f := range train {
		w, _ := slices.BinarySearch(names, f.writer)
		s.writers.of = append(s.writers.of, int32(w))
	}
	return s, nil
}

// writerFiles lists the images of a half, by name.
func writerFiles(files []treeFile, half string) (all []writerFile) {
	for _, f := range files {
		dir, base := path.Split(f.name)
		parts := strings.Split(strings.Trim(dir, "/"), "/")
		if n := len(parts); n >= 3 && parts[n-3] == half && imageName(base) {
			all = append(all, writerFile{f, parts[n-2], parts[n-1]})
		}
	}
	slices.SortFunc(all, func(a, b writerFile) int { return cmp.Compare(a.name, b.name) })
	return all
}

// namesOf lists the different names of files, sorted.
func namesOf(files []writerFile, name func(writerFile) string) []string {
	var all []string
	for _, f := range files {
		all = append(all, name(f))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

type writerImages struct{ w, h int }

// maxWriterSide is the largest height and width of an image.
const maxWriterSide = 512

func newWriterImages(first writerFile) (writerImages, error) {
	decoded, err := decodeFile(first.treeFile)
	return writerImages{decoded.W, decoded.H}, err
}

// decodeFile decodes an image.
func decodeFile(f treeFile) (decoded images.RGB, err error) {
	const most = maxWriterSide * maxWriterSide // pixels
	content, err := f.read()
	if err != nil {
		return decoded, fmt.Errorf("data: writers: %w", err)
	}
	err = images.Decode(&decoded, content, most)
	if large := (*images.TooLargeError)(nil); errors.As(err, &large) {
		return decoded, &FormatError{Path: f.path, Got: fmt.Sprintf("an image of %d×%d", large.W, large.H),
			Want: fmt.Sprintf("at most %d pixels", most), Hint: writersHint, Err: err}
	}
	if err != nil {
		return decoded, &FormatError{Path: f.path, Got: err.Error(), Want: "a JPEG or PNG image",
			Hint: "the file is damaged", Err: err}
	}
	return decoded, nil
}

// read decodes images, on all cores, to three bytes a pixel.
func (d writerImages) read(files []writerFile, classes []string) (Examples, error) {
	size := 3 * d.w * d.h
	e := Examples{Pixels: newPixels(len(files) * size), Labels: make([]int32, len(files))}
	for i, f := range files {
		c, ok := slices.BinarySearch(classes, f.class)
		if !ok {
			return e, &FormatError{Path: f.path, Got: "a test image of class " + f.class,
				Want: "a class of the training images", Hint: writersHint}
		}
		e.Labels[i] = int32(c)
	}
	return e, parallel(runtime.GOMAXPROCS(0), len(files), func(i int) error {
		decoded, err := decodeFile(files[i].treeFile)
		if err == nil && (decoded.W != d.w || decoded.H != d.h) {
			err = &FormatError{Path: files[i].path, Got: fmt.Sprintf("an image of %d×%d", decoded.W, decoded.H),
				Want: fmt.Sprintf("%d×%d, as the first one has", d.w, d.h), Hint: writersHint}
		}
		copy(e.Pixels[i*size:][:size], decoded.Pix)
		return err
	})
}

// set makes the set, with one byte a pixel if all images are grey.
func (d writerImages) set(classes int, halves [2]Examples) (*Set, error) {
	shape, channels := []int{d.h, d.w, 3}, 3
	if isGrey(halves[0].Pixels) && isGrey(halves[1].Pixels) {
		shape, channels = shape[:2], 1
		for i := range halves {
			halves[i].Pixels = firstOfThree(halves[i].Pixels)
		}
	}
	mean, std := pixelMoments(halves[0].Pixels, channels)
	return NewChannels("writers", shape, classes, mean, std, halves[0], halves[1])
}

func isGrey(pixels []uint8) bool {
	for i := 0; i < len(pixels); i += 3 {
		if pixels[i] != pixels[i+1] || pixels[i] != pixels[i+2] {
			return false
		}
	}
	return true
}

func firstOfThree(pixels []uint8) []uint8 {
	grey := newPixels(len(pixels) / 3)
	for i := range grey {
		grey[i] = pixels[3*i]
	}
	return grey
}

// pixelMoments returns the mean and the standard deviation of pixel/255 of each channel, rounded to
// four digits; a standard deviation of 0 becomes 1.
func pixelMoments(pixels []uint8, channels int) (mean, std []float32) {
	for c := range channels {
		var sum, squares uint64
		for i := c; i < len(pixels); i += channels {
			v := uint64(pixels[i])
			sum, squares = sum+v, squares+v*v
		}
		n := float64(len(pixels)/channels) * 255
		m := float64(sum) / n
		s := math.Sqrt(max(0, float64(squares)/(n*255)-float64(m*m)))
		mean = append(mean, float32(math.Round(m*1e4)/1e4))
		std = append(std, float32(cmp.Or(math.Round(s*1e4)/1e4, 1)))
	}
	return mean, std
}
