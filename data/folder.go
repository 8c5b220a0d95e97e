package data

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"fspda/data/images"
)

const imagesHint = "name a folder with train/CLASS/*.jpg and val/CLASS/*.jpg, or an archive, shards or a packed " +
	"set of such images, or train on the built-in set synthetic-images, which needs no files"

// openImages opens labelled images at a path, see [images.Open].
func openImages(name string, o OpenOptions) (*Set, error) {
	if o.Dir == "" {
		return nil, fmt.Errorf("data: set %s: no path given: %s", name, imagesHint)
	}
	found, err := images.Open(o.Dir, images.Options{ImageColumn: o.ImageColumn, LabelColumn: o.LabelColumn})
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("data: set %s: %w: %s", name, err, imagesHint)
		}
		return nil, fmt.Errorf("data: set %s: %w", name, err)
	}
	s, err := setOf(name, found, o)
	if err != nil {
		return nil, errors.Join(err, found.Close())
	}
	return s, nil
}

// setOf makes a set of opened images.
func setOf(name string, found *images.Set, o OpenOptions) (*Set, error) {
	if found.Train == nil {
		return nil, fmt.Errorf("data: set %s: %s has no training images: %s", name, found.Path, imagesHint)
	}
	test, notes := found.Test, found.Notes
	if test == nil {
		test = found.Train
		notes = append(notes, found.Path+" has no test images (val or test): the training images are used instead, "+
			"so accuracies are training accuracies")
	}
	if note := enlarged(found.Train, cmp.Or(o.Crop, defaultCrop)); note != "" {
		notes = append(notes, note)
	}
	p := o.imageOptions()
	p.Close = found.Close
	s, err := FromImages(name, len(found.Classes), found.Train, test, p)
	if err != nil {
		return nil, err
	}
	s.Notes, s.ClassNames, s.Memory = append(notes, s.Notes...), found.Classes, found.Memory
	s.Layout = found.Kind + ", " + found.Layout
	return s, nil
}

// lookedAt is the number of images whose sizes are compared with the crop.
const lookedAt = 9

// enlarged says that images are far smaller than the crop to which they are enlarged; empty: they
// are not. Images that cannot be read are left to their batches.
func enlarged(s images.Source, crop int) string {
	var sides []int
	var p images.RGB
	for k := range min(lookedAt, s.Len()) {
		if s.Image(&p, k*s.Len()/min(lookedAt, s.Len())) == nil {
			sides = append(sides, min(p.W, p.H))
		}
	}
	if len(sides) == 0 {
		return ""
	}
	slices.Sort(sides)
	side := sides[len(sides)/2]
	if 2*side >= crop {
		return ""
	}
	return fmt.Sprintf("the images are far smaller than the crop: their shorter side has %d pixels (the median "+
		"of %d), and "+
		"they are enlarged to %d; crop: %d takes them as they are, in about 1/%d of the time", side, len(sides),
		crop, side,
		crop*crop/(side*side))
}

// imageOptions converts the options for FromImages.
func (o OpenOptions) imageOptions() ImageOptions {
	return ImageOptions{Crop: o.Crop, ImageSize: o.ImageSize, Augment: o.Augment, JPEG: o.JPEG, OnBad: o.OnBad,
		Workers: o.Workers}
}
