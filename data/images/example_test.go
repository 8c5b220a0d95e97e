package images_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"os"
	"path/filepath"

	"fspda/data/images"
)

// Folders of images, one per class, become a list of labelled images.
func ExampleOpen() {
	root, err := os.MkdirTemp("", "pets")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)
	for name, grey := range map[string]uint8{"train/cat/tom.png": 50, "train/dog/rex.png": 200, "val/cat/kit.png": 90} {
		m := image.NewGray(image.Rect(0, 0, 4, 3))
		for i := range m.Pix {
			m.SetGray(i%4, i/4, color.Gray{Y: grey})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			log.Fatal(err)
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			log.Fatal(err)
		}
	}

	set, err := images.Open(root, images.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer set.Close()
	fmt.Println(set.Kind, set.Classes, set.Train.Len(), set.Test.Len())
	var p images.RGB
	if err := set.Train.Image(&p, 1); err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Classes[set.Train.Label(1)], p.W, p.H, p.Pix[:3])
	fmt.Println(set.Notes)
	// Output:
	// class folders [cat dog] 2 1
	// dog 4 3 [200 200 200]
	// [class dog of train has no picture in val: its accuracy is not measured]
}
