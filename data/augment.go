package data

import (
	"fmt"
	"slices"
	"strings"

	"fspda/internal/rng"
)

// Augment selects the data augmentation of training. Evaluation uses none.
type Augment string

const (
	None Augment = "none"
	// CIFAR shifts an image by up to 4 pixels in each direction, with zero padding, and mirrors
	// every second image.
	CIFAR Augment = "cifar"
	// ImageNet crops a random box with 8 % to 100 % of the image's area and an aspect ratio from
	// 3:4 to 4:3, scales it to the crop size, and mirrors every second image.
	ImageNet Augment = "imagenet"
)

// Augments lists the names accepted by Open; auto selects the default of the set.
func Augments() []string { return []string{"auto", string(None), string(CIFAR), string(ImageNet)} }

// variation is how training varies an example.
type variation struct {
	augment Augment
	policy  policy  // changes of the pixels after crop and mirror
	erase   float64 // probability of random erasing
	repeat  int     // appearances of an example beside each other in an epoch; 0 means 1
	mixing  mixing  // mixtures of the examples of a batch
}

// changes reports whether training sees other values than the set has.
func (v variation) changes() bool {
	return v.augment != None || v.policy.ops > 0 || v.erase > 0 || v.mixing.on()
}

// resolve replaces auto and the empty name by the default of the set.
func (a Augment) resolve(usual Augment) (Augment, error) {
	switch {
	case a == "" || a == "auto":
		return usual, nil
	case slices.Contains(Augments(), string(a)):
		return a, nil
	}
	return "", fmt.Errorf("augmentation %q is not known, want %s", a, strings.Join(Augments(), ", "))
}

// augment sets the augmentation of a set in memory: asked, or usual by default.
func (s *Set) augment(asked, usual Augment) error {
	how, err := asked.resolve(usual)
	if err == nil && how == ImageNet && (s.Train.shape[2] != 3 || s.Train.shape[0] != s.Train.shape[1]) {
		err = fmt.Errorf("augmentation %s of examples of shape %v, want square RGB images", how, s.Shape)
	}
	if err != nil {
		return fmt.Errorf("data: set %s: %w", s.Name, err)
	}
	s.Train.augment = how
	return nil
}

// repeatEach sets how often training takes an example of an epoch.
func (s *Set) repeatEach(times int) error {
	switch {
	case times < 0:
		return fmt.Errorf("data: set %s: each example %d times an epoch, want at least 1", s.Name, times)
	case times > 1 && len(s.Shape) < 2:
		return fmt.Errorf("data: set %s: repeated augmentation of examples of shape %v, want pictures", s.Name, s.Shape)
	}
	s.Train.repeat = times
	return nil
}

// augmentKey keys the random choices of a batch, together with the position in it.
type augmentKey struct {
	seed        uint64
	agent, step int
}

// stream returns the random stream of one position.
func (k augmentKey) stream(position int) rng.Stream {
	return rng.New(k.seed, "augment", uint64(k.agent), uint64(k.step), uint64(position))
}

// shiftReach is the largest shift in pixels: He et al., Deep Residual Learning for Image
// Recognition (2016), 4.2.
const shiftReach = 4

// shifted writes src, randomly shifted and mirrored, to dst. Both have the given rows, columns and
// channels.
func shifted(dst, src []uint8, shape [3]int, s *rng.Stream) {
	down, right := s.IntN(2*shiftReach+1)-shiftReach, s.IntN(2*shiftReach+1)-shiftReach
	mirror := s.IntN(2) == 1
	shift(dst, src, shape, down, right)
	if mirror {
		flip(dst, shape)
	}
}

// shift writes src, shifted down and right, to dst, with zero padding.
func shift(dst, src []uint8, shape [3]int, down, right int) {
	rows, row := shape[0], shape[1]*shape[2]
	from := max(-row, min(row, right*shape[2]))
	for y := range rows {
		to := dst[y*row:][:row]
		if y-down < 0 || y-down >= rows {
			clear(to)
			continue
		}
		line := src[(y-down)*row:][:row]
		if from >= 0 {
			clear(to[:from])
			copy(to[from:], line)
		} else {
			copy(to, line[-from:])
			clear(to[row+from:])
		}
	}
}

// flip mirrors an image left to right, in place.
func flip(img []uint8, shape [3]int) {
	columns, deep := shape[1], shape[2]
	for row := range slices.Chunk(img, columns*deep) {
		for l, r := 0, columns-1; l < r; l, r = l+1, r-1 {
			for c := range deep {
				row[l*deep+c], row[r*deep+c] = row[r*deep+c], row[l*deep+c]
			}
		}
	}
}
