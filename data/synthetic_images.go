package data

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/jpeg"
	"sync/atomic"

	"fspda/data/images"
	"fspda/internal/rng"
)

// SyntheticImagesOptions configures [SyntheticImages].
type SyntheticImagesOptions struct {
	Train, Test int    // numbers of images; 0 means 20000 and 4000
	Classes     int    // 0 means 10; at most 1000
	Seed        uint64 // two seeds make two sets of the same kind
}

const (
	defaultImageClasses  = 10
	maxImageClasses      = 1000
	maxSyntheticImages   = 1_000_000
	drawnBytes           = 7000 // approximate bytes of an image, which stays in memory once drawn
	syntheticImagesShape = 1    // version of the drawing, part of the fingerprint
)

// SyntheticImages is a set of generated images, for tests of the whole image pipeline and machines
// without data. Each image is a JPEG file of its own size, sometimes grey, which is decoded,
// cropped and scaled like a photograph. It shows a shape with a texture on a shaded, grainy
// background, with random orientation, position and colour. The class is the shape and the texture;
// with more than 20 classes also the colour, and with more than 200 the number of shapes.
//
// Every image is a pure function of (seed, split, number). It is drawn on first use.
func SyntheticImages(o SyntheticImagesOptions, p ImageOptions) (*Set, error) {
	o.Train, o.Test = cmp.Or(o.Train, defaultTrain), cmp.Or(o.Test, defaultTest)
	o.Classes = cmp.Or(o.Classes, defaultImageClasses)
	switch {
	case min(o.Train, o.Test) < 1 || max(o.Train, o.Test) > maxSyntheticImages:
		return nil, fmt.Errorf("data: set synthetic-images: %d training and %d test images, want 1 to %d each",
			o.Train, o.Test, maxSyntheticImages)
	case o.Classes < 2 || o.Classes > maxImageClasses:
		return nil, fmt.Errorf("data: set synthetic-images: %d classes, want 2 to %d", o.Classes, maxImageClasses)
	}
	s, err := FromImages("synthetic-images", o.Classes, newDrawnImages(o, 0, o.Train), newDrawnImages(o, 1, o.Test), p)
	if err == nil {
		s.Memory += drawnBytes * int64(o.Train+o.Test)
	}
	return s, err
}

// drawnImages is a source of drawn JPEG files.
type drawnImages struct {
	seed, split uint64
	classes     int
	files       []atomic.Pointer[[]byte] // nil: not yet drawn
}

var _ images.Encoded = (*drawnImages)(nil)

func newDrawnImages(o SyntheticImagesOptions, split uint64, n int) *drawnImages {
	return &drawnImages{seed: o.Seed, split: split, classes: o.Classes, files: make([]atomic.Pointer[[]byte], n)}
}

func (d *drawnImages) Len() int { return len(d.files) }

// Label cycles through the classes.
func (d *drawnImages) Label(i int) int32 { return int32(i % d.classes) }

func (d *drawnImages) Name(i int) string {
	return fmt.Sprintf("%s/%03d/%06d.jpg", [2]string{"train", "test"}[d.split], d.Label(i), i)
}

// Bytes is -1: images are drawn when they are read.
func (d *drawnImages) Bytes(int) int64 { return -1 }

// Fingerprint identifies the images without drawing them.
func (d *drawnImages) Fingerprint() string {
	return fmt.Sprintf("drawn %d: seed %d, split %d, %d classes", syntheticImagesShape, d.seed, d.split, d.classes)
}

func (d *drawnImages) Encoded(dst []byte, i int) ([]byte, error) {
	file := d.files[i].Load()
	if file == nil {
		b, err := d.draw(i)
		if err != nil {
			return nil, fmt.Errorf("data: drawing %s: %w", d.Name(i), err)
		}
		file = &b
		d.files[i].Store(file) // a concurrent call stores the same bytes
	}
	return append(dst, *file...), nil
}

func (d *drawnImages) Image(dst *images.RGB, i int) error {
	file, err := d.Encoded(nil, i)
	if err != nil {
		return err
	}
	if err := images.Decode(dst, file, 0); err != nil {
		return fmt.Errorf("data: image %s: %w", d.Name(i), err)
	}
	return nil
}

func (d *drawnImages) draw(i int) ([]byte, error) {
	s := rng.New(d.seed, "synthetic-images", d.split, uint64(i))
	scene := newScene(&s, int(d.Label(i)), d.classes)
	var m image.Image
	if s.IntN(32) == 0 {
		m = scene.grey()
	} else {
		m = scene.coloured()
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 75 + s.IntN(21)})
	return bytes.Clone(b.Bytes()), err // the copy has no spare capacity
}
