package data

import (
	"strings"
	"testing"

	"fspda/data/images"
	"fspda/device"
)

// Images scaled in advance to the evaluation size give the same evaluation crops.
func TestUnpack(t *testing.T) {
	source := newShelf(t, 8)
	o := ImageOptions{Crop: 24, ImageSize: 24, JPEG: LibJPEG, Mean: []float32{0, 0, 0},
		Std: []float32{1. / 255, 1. / 255, 1. / 255}}
	files := mustImages(t, source, source, o)
	packed, err := files.Unpack(6, 24, o)
	if err != nil {
		t.Fatal(err)
	}
	if packed.Decoder() != "" || files.Decoder() != LibJPEG || tiny(t, 4).Decoder() != "" {
		t.Errorf("decoders %q and %q, want none and go", packed.Decoder(), files.Decoder())
	}
	if !packed.Train.Packed() || files.Train.Packed() || packed.Train.Len() != 6 {
		t.Errorf("%d images, packed %t", packed.Train.Len(), packed.Train.Packed())
	}
	for i := range 6 {
		if _, w, h := packed.Train.images.source.(images.Raw).Pixels(i); min(w, h) != 24 {
			t.Errorf("image %d has %d×%d pixels, want a short side of 24", i, w, h)
		}
	}
	var a, b device.Batch
	if err := files.Train.Batch(&a, 0, 6); err != nil {
		t.Fatal(err)
	}
	if err := packed.Train.Batch(&b, 0, 6); err != nil {
		t.Fatal(err)
	}
	sameBatches(t, "unpacked", []device.Batch{b}, []device.Batch{a})
	if _, err := tiny(t, 4).Unpack(2, 24, o); err == nil || !strings.Contains(err.Error(), "cannot be unpacked") {
		t.Errorf("error %v", err)
	}
}
