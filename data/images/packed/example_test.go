package packed_test

import (
	"context"
	"fmt"
	"image"
	"image/png"
	"log"
	"os"
	"path/filepath"

	"fspda/data/images"
	"fspda/data/images/packed"
)

// A folder of images is packed once, scaled to 8 pixels at the short side, and then read without
// decoding.
func ExamplePrepare() {
	dir, err := os.MkdirTemp("", "pets")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	draw(filepath.Join(dir, "pets", "train", "cat", "tom.png"), 40, 20)
	draw(filepath.Join(dir, "pets", "train", "dog", "rex.png"), 16, 24)

	from, err := images.Open(filepath.Join(dir, "pets"), images.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer from.Close()
	to := filepath.Join(dir, "packed")
	if _, err := packed.Prepare(context.Background(), from, to,
		packed.Options{Settings: packed.Settings{Size: 8}}); err != nil {
		log.Fatal(err)
	}

	set, err := packed.Open(to)
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	for i := range set.Train.Len() {
		pix, w, h := set.Train.(images.Raw).Pixels(i)
		fmt.Println(set.Classes[set.Train.Label(i)], w, h, len(pix))
	}
	// Output:
	// cat 16 8 384
	// dog 8 12 288
}

// draw writes a black image.
func draw(path string, w, h int) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		log.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		log.Fatal(err)
	}
	if err := png.Encode(f, image.NewRGBA(image.Rect(0, 0, w, h))); err != nil {
		log.Fatal(err)
	}
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
}
