package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/data/images"
	"fspda/device"
	"fspda/internal/rng"
)

// The box is the one of the specification for the numbers ((7k² + 3k + 1) mod 101)/101.
func TestEraseBox(t *testing.T) {
	k := 0
	uniform := func() float64 {
		k++
		return float64((7*(k-1)*(k-1)+3*(k-1)+1)%101) / 101
	}
	if top, left, h, w := eraseBox(uniform, 32, 32); top != 10 || left != 18 || h != 3 || w != 8 || k != 4 {
		t.Errorf("rows %d to %d, columns %d to %d, %d numbers; want 10 to 12, 18 to 25, 4", top, top+h-1, left,
			left+w-1, k)
	}
	// no box fits into a single row
	if _, _, h, w := eraseBox(uniform, 1, 3000); h*w != 0 {
		t.Errorf("a box of %d×%d in a single row", h, w)
	}
}

// Boxes have torchvision's distribution: a quarter of the pictures lose one, its area is uniform
// between 2 and 33 %, its ratio of height to width log-uniform between 0.3 and 3.3, its place
// uniform.
func TestEraseIsUniform(t *testing.T) {
	const side, draws = 200, 20000
	shape := [3]int{side, side, 1}
	values := make([]float32, side*side)
	erased, area, logs, upper := 0, 0.0, 0.0, 0.0
	for i := range draws {
		s := augmentKey{1, 0, i}.stream(0)
		if again := s; again.Float64() >= 0.25 {
			continue
		}
		erased++
		again := s
		again.Float64()
		top, left, h, w := eraseBox(again.Float64, side, side)
		if top < 0 || left < 0 || top+h > side || left+w > side {
			t.Fatalf("box %d, %d, %d×%d outside", top, left, h, w)
		}
		part, ratio := float64(h*w)/(side*side), float64(h)/float64(w)
		if part < 0.019 || part > 0.335 || ratio < 0.28 || ratio > 3.5 {
			t.Fatalf("box of %d×%d", h, w)
		}
		area, logs, upper = area+part, logs+math.Log(ratio), upper+float64(top)/float64(side-h)
		if i%16 > 0 {
			continue
		}
		for j := range values {
			values[j] = 1
		}
		eraseRandomly(values, shape, 0.25, &s)
		for j, v := range values {
			y, x := j/side, j%side
			if inside := y >= top && y < top+h && x >= left && x < left+w; inside != (v == 0) {
				t.Fatalf("box %d, %d, %d×%d: row %d, column %d is %v", top, left, h, w, y, x, v)
			}
		}
	}
	n := float64(erased)
	for what, c := range map[string][3]float64{
		"share of pictures": {n / draws, 0.25, 0.01}, "area": {area / n, 0.175, 0.005},
		"logarithm of the ratio": {logs / n, (math.Log(0.3) + math.Log(3.3)) / 2, 0.03},
		"place":                  {upper / n, 0.5, 0.015},
	} {
		if math.Abs(c[0]-c[1]) > c[2] {
			t.Errorf("mean %s %v, want about %v", what, c[0], c[1])
		}
	}
}

// Erasing draws after crop and mirror: outside of the box an example is the one without erasing,
// and it is 0 inside. Batches of the evaluation and of batch norm's statistics are not erased.
func TestEraseComesLast(t *testing.T) {
	for _, augment := range []Augment{None, CIFAR} {
		split := coloured(t, 30, augment).Train
		examples := []int32{7, 0, 29, 3, 12, 5, 18, 7}
		var plain, erased, outside, whole device.Batch
		key := augmentKey{1, 2, 3}
		for dst, p := range map[*device.Batch]float64{&plain: 0, &erased: 1} {
			split.erase = p
			if err := split.gatherAugmented(dst, examples, nil, key, new(imageScratch), nil); err != nil {
				t.Fatal(err)
			}
		}
		zeros := 0
		for i, v := range erased.X {
			switch {
			case v == 0:
				zeros++
			case v != plain.X[i]:
				t.Fatalf("%s: value %d is %v, and %v without erasing", augment, i, v, plain.X[i])
			}
		}
		if part := float64(zeros) / float64(len(erased.X)); part < 0.05 || part > 0.3 {
			t.Errorf("%s: %v of the values are 0", augment, part)
		}
		split.erase = 1
		if err := split.GatherAugmented(&outside, examples, 1, 2, 3); err != nil || !slices.Equal(outside.X, plain.X) {
			t.Errorf("%s: batch norm is measured on erased pictures, %v", augment, err)
		}
		if err := split.Gather(&whole, examples); err != nil {
			t.Fatal(err)
		}
		want := make([]float32, len(whole.X))
		for row, e := range examples {
			split.norm.applyGo(want[row*90:][:90], split.pixels(e))
		}
		if !slices.Equal(whole.X, want) {
			t.Errorf("%s: evaluation sees erased pictures", augment)
		}
	}
}

// Digits in memory, to which batches only refer, are values where training erases them.
func TestEraseInMemory(t *testing.T) {
	s, err := Open("synthetic", OpenOptions{TrainSize: 130, TestSize: 10, Vary: Variation{Erase: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Train.Refers() || !s.Test.Refers() {
		t.Error("training refers to the memory of the set, or the evaluation does not")
	}
	o := LoaderOptions{Batch: 9, Seed: 5}
	want := play(t, mustLoader(t, s.Train, shardOf(40), 6, o), 11)
	if len(want[0].X) != 9*784 || want[0].Rows != nil {
		t.Fatalf("%d values and rows %v", len(want[0].X), want[0].Rows)
	}
	for _, c := range []struct{ first, ahead int }{{0, 3}, {4, 0}, {5, 2}} {
		o.First, o.Ahead = c.first, c.ahead
		sameBatches(t, "erased", play(t, mustLoader(t, s.Train, shardOf(40), 6, o), 11-c.first), want[c.first:])
	}
}

// JPEG files on any number of goroutines and the same pixels stored raw give the same erased
// batches, cropped and mirrored as without erasing.
func TestEraseDecoded(t *testing.T) {
	files := newShelf(t, 60)
	raw := &rawShelf{shelf: *files, images: make([]images.RGB, files.Len())}
	for i := range raw.images {
		if err := files.Image(&raw.images[i], i); err != nil {
			t.Fatal(err)
		}
	}
	for _, augment := range []Augment{None, CIFAR, ImageNet} {
		make := func(source images.Source, p float64, workers int) []device.Batch {
			o := ImageOptions{Crop: 16, Augment: augment, Workers: workers}
			s, err := FromImages("erased", 2, source, source, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.randomErase(p); err != nil {
				t.Fatal(err)
			}
			return play(t, mustLoader(t, s.Train, shardOf(20), 1, LoaderOptions{Batch: 8, Seed: 7, Ahead: 1}), 4)
		}
		plain, want := make(files, 0, 2), make(files, 0.5, 1)
		sameBatches(t, "on four goroutines", make(files, 0.5, 4), want)
		sameBatches(t, "raw", make(raw, 0.5, 3), want)
		changed := 0
		for b := range want {
			for i, v := range want[b].X {
				if v == plain[b].X[i] {
					continue
				}
				if changed++; v != 0 {
					t.Fatalf("%s: a value that is not erased has changed", augment)
				}
			}
		}
		if changed == 0 {
			t.Errorf("%s: nothing is erased", augment)
		}
	}
}

// Texts have no boxes to erase, and a probability is at most 1.
func TestEraseRefuses(t *testing.T) {
	for want, c := range map[string]struct {
		name string
		p    float64
	}{"want pictures": {"synthetic-text", 0.5}, "want 0 to 1": {"synthetic", 1.5}} {
		_, err := Open(c.name, OpenOptions{TrainSize: 3000, TestSize: 1000, Vary: Variation{Erase: c.p}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %v: %v", c.name, c.p, err)
		}
	}
	s := rng.New(1, "none")
	before := s
	eraseRandomly(nil, [3]int{2, 2, 1}, 0, &s)
	if s != before {
		t.Error("random numbers are drawn where nothing is erased")
	}
}
