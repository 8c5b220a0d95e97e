package jpeg_test

import (
	"fmt"
	"image"
	"os"

	"fspda/data/images/jpeg"
)

// The left half of a picture.
func Example() {
	file, err := os.ReadFile("../testdata/decode/420.jpg")
	if err != nil {
		fmt.Println(err)
		return
	}
	var d jpeg.Decoder
	w, h, err := d.Header(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := d.Decode(image.Rect(0, 0, w/2, h))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d×%d pixels, of which %v are decoded\n", w, h, m.Bounds())
	// Output: 37×29 pixels, of which (0,0)-(32,29) are decoded
}
