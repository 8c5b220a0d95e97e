package data

import (
	"bytes"
	"image/jpeg"
	"slices"
	"strings"
	"testing"

	"fspda/data/images"
	"fspda/device"
)

// Images are JPEG files of many sizes, functions of (seed, split, number) alone, and some are grey.
func TestSyntheticImages(t *testing.T) {
	o := SyntheticImagesOptions{Train: 60, Test: 30, Seed: 4}
	source := newDrawnImages(SyntheticImagesOptions{Seed: 4, Classes: 10}, 0, 60)
	again := newDrawnImages(SyntheticImagesOptions{Seed: 4, Classes: 10}, 0, 100)
	other := newDrawnImages(SyntheticImagesOptions{Seed: 5, Classes: 10}, 0, 60)
	test := newDrawnImages(SyntheticImagesOptions{Seed: 4, Classes: 10}, 1, 60)
	sizes, grey := map[[2]int]bool{}, 0
	for i := range source.Len() {
		file, err := source.Encoded(nil, i)
		if err != nil {
			t.Fatal(err)
		}
		c, err := jpeg.DecodeConfig(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		sizes[[2]int{c.Width, c.Height}] = true
		if bytes.Contains(file[:700], []byte{0xff, 0xc0, 0, 11}) { // a frame of one component
			grey++
		}
		if b, _ := again.Encoded(nil, i); !bytes.Equal(file, b) {
			t.Fatalf("image %d depends on how many there are", i)
		}
		for what, s := range map[string]*drawnImages{"seed": other, "split": test} {
			if b, _ := s.Encoded(nil, i); bytes.Equal(file, b) {
				t.Fatalf("image %d does not depend on the %s", i, what)
			}
		}
	}
	if len(sizes) < 50 || grey == 0 || grey > 10 {
		t.Errorf("%d sizes and %d grey images of 60", len(sizes), grey)
	}
	set, err := SyntheticImages(o, ImageOptions{Crop: 32, JPEG: GoJPEG})
	if err != nil {
		t.Fatal(err)
	}
	if set.Classes != 10 || set.Train.Len() != 60 || set.Test.Len() != 30 ||
		!slices.Equal(set.Shape, []int{32, 32, 3}) {
		t.Errorf("%d classes, %d and %d images, shape %v", set.Classes, set.Train.Len(), set.Test.Len(), set.Shape)
	}
	if err := set.Test.Batch(new(device.Batch), 0, 30); err != nil {
		t.Error(err)
	}
}

func TestSyntheticImagesRefuses(t *testing.T) {
	for _, c := range []struct {
		o    SyntheticImagesOptions
		want string
	}{
		{SyntheticImagesOptions{Classes: 1001}, "1001 classes, want 2 to 1000"},
		{SyntheticImagesOptions{Train: -1}, "-1 training and 4000 test images"},
	} {
		if _, err := SyntheticImages(c.o, ImageOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// With the maximum number of classes each is distinguishable by shape, texture, colour or number.
func TestSyntheticImagesOfAThousandClasses(t *testing.T) {
	d := newDrawnImages(SyntheticImagesOptions{Classes: 1000}, 0, 1000)
	for _, class := range []int{0, 19, 20, 219, 999} {
		var p images.RGB
		if err := d.Image(&p, class); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(shapes) * len(textures) * inks * 5; n < maxImageClasses {
		t.Errorf("only %d kinds of images with up to five shapes", n)
	}
}

func BenchmarkDrawImage(b *testing.B) {
	d := newDrawnImages(SyntheticImagesOptions{Classes: 10}, 0, 10)
	for i := 0; b.Loop(); i++ {
		if _, err := d.draw(i % 10); err != nil {
			b.Fatal(err)
		}
	}
}
