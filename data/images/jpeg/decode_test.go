package jpeg

import (
	"bytes"
	"errors"
	"image"
	"os"
	"testing"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("../testdata/decode/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What this package decodes by itself. That the pixels are libjpeg's is a test of package images.
func TestSupported(t *testing.T) {
	var d Decoder
	for name, want := range map[string]error{
		"420.jpg": nil, "422.jpg": nil, "444.jpg": nil, "grey.jpg": nil, "restart.jpg": nil, "exif-rotated.jpg": nil,
		"narrow.jpg": nil, "progressive.jpg": nil, "progressive-grey.jpg": nil, "cmyk-adobe.jpg": ErrUnsupported,
		"cmyk-plain.jpg": ErrUnsupported, "rgb.png": ErrDamaged,
	} {
		w, h, err := d.Header(read(t, name))
		if !errors.Is(err, want) {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
		if want != nil {
			continue
		}
		if m, err := d.Decode(image.Rect(0, 0, w, h)); err != nil || m.Bounds() != image.Rect(0, 0, w, h) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A cut file and a bad byte of the scan are errors whatever box is wanted, and the decoder remains
// usable.
func TestDamage(t *testing.T) {
	var d Decoder
	good := read(t, "420.jpg")
	box := image.Rect(0, 0, 2, 2) // in the first of six MCUs
	try := func(file []byte) error {
		_, _, err := d.Header(file)
		if err == nil {
			_, err = d.Decode(box)
		}
		return err
	}
	for cut := range good {
		if err := try(good[:cut]); err == nil {
			t.Fatalf("%d of %d bytes are no error", cut, len(good))
		}
	}
	scan := bytes.Index(good, []byte{0xff, 0xda}) + 14
	if err := try(append(bytes.Clone(good[:len(good)-60]), good[len(good)-2:]...)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a scan without its last bytes: error %v", err)
	}
	if err := try(append(append(bytes.Clone(good[:scan]), 0xff, 0xd3), good[scan:]...)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a restart marker without restart interval: error %v", err)
	}
	restarts := read(t, "restart.jpg")
	at := bytes.Index(restarts, []byte{0xff, 0xd0})
	if err := try(append(bytes.Clone(restarts[:at]), restarts[at+2:]...)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a restart marker less: error %v", err)
	}
	if err := try(good); err != nil {
		t.Error(err)
	}
}

// For any input: no panic.
func FuzzDecode(f *testing.F) {
	for _, name := range []string{"420.jpg", "422.jpg", "444.jpg", "grey.jpg", "restart.jpg", "narrow.jpg",
		"progressive.jpg", "progressive-grey.jpg"} {
		f.Add(read(f, name))
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, b []byte) {
		w, h, err := d.Header(b)
		if err == nil && w*h < 1<<20 {
			box := image.Rect(w/2, h/2, w, h)
			if m, err := d.Decode(box); err == nil && !box.In(m.Bounds()) {
				t.Errorf("%d×%d: %v", w, h, m.Bounds())
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	file := read(b, "444.jpg")
	var d Decoder
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		w, h, err := d.Header(file)
		if err == nil {
			_, err = d.Decode(image.Rect(0, 0, w, h))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
