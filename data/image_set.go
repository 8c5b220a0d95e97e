package data

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"runtime"
	"slices"

	"fspda/data/images"
)

// The means and standard deviations of pixel/255 over the training images of ImageNet: red, green,
// blue.
var (
	imagenetMean = []float32{0.485, 0.456, 0.406}
	imagenetStd  = []float32{0.229, 0.224, 0.225}
)

const (
	defaultCrop = 224
	maxCrop     = 4096
)

// ImageOptions configures [FromImages].
type ImageOptions struct {
	Crop int // side of the network's input, in pixels; 0 means 224
	// shorter side of an evaluation image before the central crop; 0 means 8/7 of Crop
	ImageSize int
	Augment   Augment // augmentation of training; empty or auto means imagenet
	JPEG      Decoder // empty or auto: LibJPEG
	OnBad     OnBad   // empty: Fail
	Workers   int     // images decoded concurrently; 0 means the number of cores

	Mean, Std []float32 // statistics of pixel/255 per channel; nil means ImageNet's

	Close func() error // closes the sources; may be nil
}

// resolve sets the defaults and validates the options.
func (o ImageOptions) resolve() (ImageOptions, error) {
	o.Crop = cmp.Or(o.Crop, defaultCrop)
	o.ImageSize = cmp.Or(o.ImageSize, (o.Crop*8+3)/7)
	o.OnBad = cmp.Or(o.OnBad, Fail)
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	if o.Mean == nil && o.Std == nil {
		o.Mean, o.Std = imagenetMean, imagenetStd
	}
	switch {
	case o.Crop < 1 || o.Crop > maxCrop:
		return o, fmt.Errorf("crop of %d pixels, want 1 to %d", o.Crop, maxCrop)
	case o.ImageSize < o.Crop || o.ImageSize > 2*maxCrop:
		return o, fmt.Errorf("image size of %d pixels, want %d, the crop, to %d", o.ImageSize, o.Crop, 2*maxCrop)
	case o.OnBad != Fail && o.OnBad != Skip:
		return o, fmt.Errorf("unknown handling %q of bad images, want %s or %s", o.OnBad, Fail, Skip)
	case o.Workers < 0:
		return o, fmt.Errorf("%d workers, want 1 or more, or 0 for all cores", o.Workers)
	}
	var err error
	if o.Augment, err = o.Augment.resolve(ImageNet); err != nil {
		return o, err
	}
	o.JPEG, err = o.JPEG.resolve()
	return o, err
}

// FromImages makes a set of two sources of images, which are decoded on demand to RGB crops. An
// image that cannot be read is an error of its batch, or handled as set by OnBad.
func FromImages(name string, classes int, train, test images.Source, o ImageOptions) (*Set, error) {
	o, err := o.resolve()
	if err != nil {
		return nil, fmt.Errorf("data: set %s: %w", name, err)
	}
	shape := []int{o.Crop, o.Crop, 3}
	s, err := NewChannels(name, shape, classes, o.Mean, o.Std, Examples{}, Examples{})
	if err != nil {
		return nil, err
	}
	s.bad, s.close = &badImages{seen: map[badImage]error{}}, o.Close
	pool := newScratchPool(o.Workers)
	for _, half := range []struct {
		name string
		from images.Source
		to   *Split
	}{{"train", train, &s.Train}, {"test", test, &s.Test}} {
		if half.to.Labels, err = labelsOf(half.from, classes); err != nil {
			return nil, fmt.Errorf("data: set %s: %s images: %w", name, half.name, err)
		}
		half.to.images = &decodedImages{source: half.from,
			side: o.Crop, short: o.ImageSize, onBad: o.OnBad, decoder: o.JPEG, pool: pool, bad: s.bad}
	}
	s.Train.augment = o.Augment
	s.print = func() string { return s.hashImages(o) }
	return s, nil
}

func labelsOf(s images.Source, classes int) ([]int32, error) {
	if s == nil || s.Len() == 0 {
		return nil, fmt.Errorf("there are none")
	}
	if s.Len() > math.MaxInt32 {
		return nil, fmt.Errorf("%d of them, want fewer than 2^31", s.Len())
	}
	labels := make([]int32, s.Len())
	for i := range labels {
		labels[i] = s.Label(i)
	}
	return labels, checkLabels(labels, classes)
}

// Decoder returns the JPEG decoder of a set, or "" if no images are decoded during a run.
func (s *Set) Decoder() Decoder {
	for _, half := range []Split{s.Train, s.Test} {
		if half.images != nil && !half.Packed() {
			return half.images.decoder
		}
	}
	return ""
}

// fingerprinted is a source that knows a hash of its content.
type fingerprinted interface{ Fingerprint() string }

// hashImages identifies the images, without reading them: by the source's own fingerprint, or
// by labels, names and sizes of files. The decoder's name follows a dash.
func (s *Set) hashImages(o ImageOptions) string {
	h := sha256.New()
	number := func(n int64) { h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	for _, n := range []int{s.Classes, o.Crop, o.ImageSize} {
		number(int64(n))
	}
	for _, v := range append(slices.Clone(s.Mean), s.Std...) {
		number(int64(math.Float32bits(v)))
	}
	jpeg := ""
	if d := s.Decoder(); d != "" {
		jpeg = "-" + string(d)
	}
	for _, half := range []Split{s.Train, s.Test} {
		source := half.images.source
		number(int64(half.Len()))
		if own, ok := source.(fingerprinted); ok {
			h.Write([]byte(own.Fingerprint()))
		}
		for i, y := range half.Labels {
			number(int64(y))
			if name := source.Name(i); name != "" {
				h.Write(append([]byte(name), 0))
			}
			if size := source.Bytes(i); size >= 0 {
				number(size)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16]) + jpeg
}
