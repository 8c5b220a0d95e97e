package imagetest

import (
	"bytes"
	"image"
	"testing"
)

// The files decode to a picture of the same size, and a better quality takes more bytes.
func TestEncode(t *testing.T) {
	m := image.NewGray(image.Rect(0, 0, 40, 30))
	for i := range m.Pix {
		m.Pix[i] = uint8(i * i)
	}
	for kind, file := range map[string][]byte{"jpeg": JPEG(t, m, 90), "png": PNG(t, m)} {
		got, found, err := image.Decode(bytes.NewReader(file))
		if err != nil || found != kind || got.Bounds() != m.Bounds() {
			t.Errorf("%s: a %s, %v", kind, found, err)
		}
	}
	if low, high := len(JPEG(t, m, 10)), len(JPEG(t, m, 95)); low >= high {
		t.Errorf("%d bytes at quality 10, %d at 95", low, high)
	}
}
