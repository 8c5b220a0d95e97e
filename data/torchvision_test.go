package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"fspda/data/images"
)

// What training and evaluation see of a JPEG is what torchvision shows, to within a level, also
// where the crop is half as large as the picture and a reduced decoding would be tempting.
func TestTorchvision(t *testing.T) {
	const side, short = 48, 55
	dir := filepath.Join("testdata", "torchvision")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var boxes [][4]int
	if err := json.Unmarshal(read("boxes.json"), &boxes); err != nil || len(boxes) == 0 {
		t.Fatalf("%d boxes, %v", len(boxes), err)
	}
	for _, name := range []string{"420", "422", "444"} {
		var want images.RGB
		if err := images.Decode(&want, read(name+".png"), 0); err != nil {
			t.Fatal(err)
		}
		buf := imageScratch{pixels: make([]uint8, 3*side*side)}
		width, height, err := buf.decoder.Open(read(name+".jpg"), 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1 + len(boxes) {
			across, down := centreCrop(width, height, short, side)
			if i > 0 {
				b := boxes[i-1]
				across, down = window{from: b[0], size: b[2], out: side}, window{from: b[1], size: b[3], out: side}
			}
			if err := buf.crop(side, across, down); err != nil {
				t.Fatal(err)
			}
			most, differ := 0, 0
			for j, v := range buf.pixels {
				torch := int(want.Pix[i*len(buf.pixels)+j])
				if d := max(int(v)-torch, torch-int(v)); d > 0 {
					most, differ = max(most, d), differ+1
				}
			}
			if most > 1 || differ > len(buf.pixels)/4 {
				t.Errorf("%s, view %d: %d of %d numbers differ, by up to %d levels", name, i, differ, len(buf.pixels),
					most)
			}
		}
	}
}
