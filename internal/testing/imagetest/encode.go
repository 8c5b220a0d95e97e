package imagetest

import (
	"bytes"
	"image"
	"image/jpeg"
	"image/png"
	"testing"
)

// JPEG is the file of a picture at a quality of 1 to 100.
func JPEG(t testing.TB, m image.Image, quality int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// PNG is the file of a picture.
func PNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
