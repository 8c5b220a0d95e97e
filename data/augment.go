package data

import (
	"fmt"
	"slices"
	"strings"

	"fspda/internal/rng"
)

// Augment says how training varies its examples. Evaluation never does.
type Augment string

const (
	None Augment = "none"
	// CIFAR moves a picture by up to 4 pixels each way, with black where nothing is left, and
	// mirrors every other one.
	CIFAR Augment = "cifar"
	// ImageNet looks at a random box of a picture, of 8 % to 100 % of its area and 3:4 to 4:3,
	// scaled to the size of the crop, and mirrors every other one.
	ImageNet Augment = "imagenet"
)

// Augments lists the names that Open knows; auto leaves the choice to the set.
func Augments() []string { return []string{"auto", string(None), string(CIFAR), string(ImageNet)} }

// settle is the augmentation meant: that of the set where it is auto or empty.
func (a Augment) settle(usual Augment) (Augment, error) {
	switch {
	case a == "" || a == "auto":
		return usual, nil
	case slices.Contains(Augments(), string(a)):
		return a, nil
	}
	return "", fmt.Errorf("augmentation %q is not known, want %s", a, strings.Join(Augments(), ", "))
}

// augment says how training varies the examples of a set in memory: usually so, unless another way
// is asked for.
func (s *Set) augment(asked, usual Augment) error {
	how, err := asked.settle(usual)
	if err == nil && how == ImageNet && (s.Train.shape[2] != 3 || s.Train.shape[0] != s.Train.shape[1]) {
		err = fmt.Errorf("augmentation %s of examples of shape %v, want squares of red, green and blue", how, s.Shape)
	}
	if err != nil {
		return fmt.Errorf("data: set %s: %w", s.Name, err)
	}
	s.Train.varied = how
	return nil
}

// augmentKey is what the random choices of a batch are keyed by, beside the position in it.
type augmentKey struct {
	seed        uint64
	agent, step int
}

// stream is that of one position.
func (k augmentKey) stream(position int) rng.Stream {
	return rng.New(k.seed, "augment", uint64(k.agent), uint64(k.step), uint64(position))
}

// shiftReach is how far CIFAR moves a picture, in pixels: He et al., Deep Residual Learning for
// Image Recognition (2016), 4.2.
const shiftReach = 4

// shifted writes src, moved and mirrored at random, to dst. Both are pictures of the given rows,
// columns and channels.
func shifted(dst, src []uint8, shape [3]int, s *rng.Stream) {
	down, right := s.IntN(2*shiftReach+1)-shiftReach, s.IntN(2*shiftReach+1)-shiftReach
	mirror := s.IntN(2) == 1
	shift(dst, src, shape, down, right)
	if mirror {
		flip(dst, shape)
	}
}

// shift writes src, moved down and right, to dst. What comes in from outside is black.
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

// flip mirrors a picture left to right, in place.
func flip(picture []uint8, shape [3]int) {
	columns, deep := shape[1], shape[2]
	for row := range slices.Chunk(picture, columns*deep) {
		for l, r := 0, columns-1; l < r; l, r = l+1, r-1 {
			for c := range deep {
				row[l*deep+c], row[r*deep+c] = row[r*deep+c], row[l*deep+c]
			}
		}
	}
}
