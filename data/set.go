package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"

	"fspda/data/text"
	"fspda/device"
)

// Set is a labelled set of images, in memory or decoded on demand, or a text: training and test
// examples. It is immutable and safe for concurrent use. Make one with [New], [Open], [LoadMNIST],
// [LoadCIFAR10], [LoadCIFAR100], [LoadFashionMNIST], [LoadWriters], [Synthetic], [FromImages],
// [Indexed] or [FromText].
type Set struct {
	Name    string
	Shape   []int // shape of one example: [28 28], or [H W C] with RGB channels last, or [T] tokens
	Classes int   // number of classes; for a text, tokens of its vocabulary
	Train   Split
	Test    Split
	Mean    []float32 // mean of pixel/255: one number per channel, or one for all
	Std     []float32 // standard deviation of pixel/255, of the same length
	Notes   []string  // warnings for the user; usually none
	Layout  string    // where the pictures of each split and their classes were found; "" if there was no choice
	Memory  int64     // bytes that reading images takes beyond a batch

	ClassNames []string // names by class; nil: not known

	Text  *text.Corpus // nil: not a text
	Floor float64      // smallest loss that any model can have; 0: not known

	bytesPerToken func() float64 // mean length of a token of a text

	writers *writers // writers of the training examples; nil: not known

	print func() string
	bad   *badImages // nil in memory
	close func() error
}

// Split is one half of a Set: Len examples. A pixel p represents (p/255 - mean)/std, which is
// computed when a batch is made, so that a set takes a quarter of the memory of its float32 values.
type Split struct {
	// Len()×Features(), row-major; nil if images are decoded on demand, and of a text
	Pixels []uint8
	Labels []int32 // Len() class indices; nil of a text

	shape     [3]int // rows, columns, channels
	norm      *normalizer
	variation                // How pictures of training vary.
	images    *decodedImages // nil in memory
	windows   *textWindows   // nil: not a text
	store     *device.CacheKey
}

// Examples are the images and labels for [New].
type Examples struct {
	Pixels []uint8 // n×features, row-major
	Labels []int32 // n class indices in [0,classes)
}

// New makes a set of the given examples, which it keeps, with one mean and one std for all pixels.
// It returns an error if pixels, labels and shape are inconsistent, a label is outside [0,classes),
// or mean or std is invalid.
func New(name string, shape []int, classes int, mean, std float32, train, test Examples) (*Set, error) {
	return NewChannels(name, shape, classes, []float32{mean}, []float32{std}, train, test)
}

// NewChannels is [New] with a mean and a std for each channel; the shape [H W C] has 1 or 3
// channels.
func NewChannels(name string, shape []int, classes int, mean, std []float32, train, test Examples) (*Set, error) {
	features := 1
	for _, d := range shape {
		if d <= 0 || features > math.MaxInt32/d {
			return nil, fmt.Errorf("data: set %s: shape %v, want positive sizes with a product below 2^31", name, shape)
		}
		features *= d
	}
	if classes < 1 {
		return nil, fmt.Errorf("data: set %s: %d classes, want at least 1", name, classes)
	}
	norm, err := newNormalizer(mean, std)
	if err != nil {
		return nil, fmt.Errorf("data: set %s: %w", name, err)
	}
	if n := len(norm.channels); n > 1 && (len(shape) != 3 || shape[2] != n) {
		return nil, fmt.Errorf("data: set %s: %d means and shape %v, want one mean, or rows, columns and as many "+
			"channels", name, n, shape)
	}
	s := &Set{Name: name, Shape: slices.Clone(shape), Classes: classes, Mean: slices.Clone(mean),
		Std: slices.Clone(std)}
	for _, half := range []struct {
		name string
		from Examples
		to   *Split
	}{{"train", train, &s.Train}, {"test", test, &s.Test}} {
		if err := half.from.check(features, classes); err != nil {
			return nil, fmt.Errorf("data: set %s: %s examples: %w", name, half.name, err)
		}
		*half.to = Split{Pixels: half.from.Pixels, Labels: half.from.Labels, shape: volume(shape), norm: norm,
			variation: variation{augment: None}, store: new(device.CacheKey)}
	}
	s.print = sync.OnceValue(s.hash)
	return s, nil
}

// volume returns a shape as rows, columns and channels.
func volume(shape []int) [3]int {
	switch len(shape) {
	case 2:
		return [3]int{shape[0], shape[1], 1}
	case 3:
		return [3]int(shape)
	}
	features := 1
	for _, d := range shape {
		features *= d
	}
	return [3]int{1, features, 1}
}

func (e Examples) check(features, classes int) error {
	if len(e.Pixels)%features != 0 || len(e.Pixels)/features != len(e.Labels) {
		return fmt.Errorf("%d pixels and %d labels, want %d pixels for each label", len(e.Pixels), len(e.Labels),
			features)
	}
	return checkLabels(e.Labels, classes)
}

func checkLabels(labels []int32, classes int) error {
	for i, y := range labels {
		if y < 0 || int(y) >= classes {
			return fmt.Errorf("label %d of example %d, want 0 to %d", y, i, classes-1)
		}
	}
	return nil
}

// Features is the number of values of one example: the product of Shape.
func (s *Set) Features() int { return s.Train.Features() }

// Fingerprint returns a hash, in 32 hexadecimal digits, of the set as a training run sees it:
// shape, classes, normalization, pixels and labels, but not the name. A checkpoint stores it to
// detect other data on resume.
func (s *Set) Fingerprint() string { return s.print() }

func (s *Set) hash() string {
	h := sha256.New()
	head := []uint64{uint64(len(s.Shape)), uint64(s.Classes)}
	for _, v := range append(slices.Clone(s.Mean), s.Std...) {
		head = append(head, uint64(math.Float32bits(v)))
	}
	head = append(head, uint64(s.Train.Len()), uint64(s.Test.Len()))
	for _, d := range s.Shape {
		head = append(head, uint64(d))
	}
	word := make([]byte, 0, 4096)
	for _, v := range head {
		word = binary.LittleEndian.AppendUint64(word, v)
	}
	for _, half := range []Split{s.Train, s.Test} {
		h.Write(word)
		h.Write(half.Pixels)
		for labels := range slices.Chunk(half.Labels, 1024) {
			word = word[:0]
			for _, y := range labels {
				word = binary.LittleEndian.AppendUint32(word, uint32(y))
			}
			h.Write(word)
		}
		word = word[:0]
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func (s Split) Len() int {
	if s.windows != nil {
		return s.windows.len()
	}
	return len(s.Labels)
}

// Features is the number of values of one example: of a window, its tokens.
func (s Split) Features() int { return s.shape[0] * s.shape[1] * s.shape[2] }
