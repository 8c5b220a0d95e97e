package web

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

func TestPNG(t *testing.T) {
	b, err := everything().png()
	if err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	at := func(x, y float64) color.RGBA { // in units of the drawing
		return color.RGBAModel.Convert(img.At(int(x*pngDPI/72), int(y*pngDPI/72))).(color.RGBA)
	}
	if got := at(1, 49); got != rgb(0xffffff) {
		t.Errorf("background %v", got)
	}
	if got, want := at(25, 25), rgb(0xbfdcec); !near(got, want) { // a quarter of the blue on white
		t.Errorf("cell %v, want %v", got, want)
	}
	if got := at(50, 25); got != rgb(0xffffff) {
		t.Errorf("inside of the disc %v", got)
	}
	if got := at(60, 25); !near(got, toneOf("blue").light) {
		t.Errorf("rim of the disc %v", got)
	}
	// Right-aligned text ends at its anchor, and upright text is higher than wide.
	if r := dark(img, image.Rect(62*pngDPI/72, 0, 80*pngDPI/72, 50*pngDPI/72)); !r.Empty() {
		t.Errorf("text right of its end, in %v", r)
	}
	if r := dark(img, image.Rect(80*pngDPI/72, 0, 100*pngDPI/72, 50*pngDPI/72)); r.Empty() || r.Dy() <= r.Dx() {
		t.Errorf("upright text covers %v", r)
	}
}

func near(a, b color.RGBA) bool {
	const tolerance = 8 // for antialiasing
	d := func(x, y uint8) int { return max(int(x)-int(y), int(y)-int(x)) }
	return d(a.R, b.R) <= tolerance && d(a.G, b.G) <= tolerance && d(a.B, b.B) <= tolerance
}

// dark returns the bounding box of the non-white pixels in a part of a picture.
func dark(img image.Image, part image.Rectangle) (box image.Rectangle) {
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			if r, _, _, _ := img.At(x, y).RGBA(); r < 0xf000 {
				box = box.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return box
}

func TestTextWidth(t *testing.T) {
	// In Liberation Sans, as in Arial, a digit is 1139/2048 of the size wide.
	if got, want := textWidth("v-key", "0000"), 4*12*1139.0/2048; got < want-0.3 || got > want+0.3 {
		t.Errorf("width %.2f, want %.2f", got, want)
	}
	if textWidth("v-title", "m") <= textWidth("v-key", "m") {
		t.Error("bold, larger text is not wider")
	}
}

// The frequent colours of an image of many are exact, and the others nearly.
func TestWithPalette(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range 64 * 64 {
		img.SetRGBA(i%64, i/64, color.RGBA{uint8(i / 16), uint8(i % 16 / 12 * (i % 5)), 7, 255})
	}
	got, ok := withPalette(img, nil).(*image.Paletted)
	if !ok || len(got.Palette) != 256 {
		t.Fatalf("%T of %d colours", got, len(got.Palette))
	}
	for i := range 64 * 64 {
		a, b := img.RGBAAt(i%64, i/64), color.RGBAModel.Convert(got.At(i%64, i/64)).(color.RGBA)
		if a.G == 0 && a != b || !near(a, b) {
			t.Fatalf("pixel %d is %v, want %v", i, b, a)
		}
	}
	if _, ok := withPalette(image.NewGray(img.Rect), nil).(*image.Gray); !ok {
		t.Error("an image in other colours is not returned as it is")
	}
}
