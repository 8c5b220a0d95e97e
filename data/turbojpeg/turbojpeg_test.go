package turbojpeg

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"testing"

	"fspda/data/images/imagetest"
)

func mustDecoder(t testing.TB) *Decoder {
	t.Helper()
	l, err := Open()
	if errors.Is(err, ErrNotFound) {
		t.Skip(err)
	}
	d, err := l.NewDecoder()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// ramp returns a JPEG of w×h pixels whose red increases to the right and whose green increases
// downwards.
func ramp(t testing.TB, w, h int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, color.RGBA{uint8(255 * x / w), uint8(255 * y / h), 100, 255})
		}
	}
	return imagetest.JPEG(t, m, 95)
}

// The image has its colours at every reduction.
func TestDecode(t *testing.T) {
	d := mustDecoder(t)
	const w, h = 123, 77
	file := ramp(t, w, h)
	head, err := d.Header(file)
	if err != nil || head.W != w || head.H != h || !head.Supported() {
		t.Fatalf("header %+v, %v", head, err)
	}
	for _, f := range Reductions {
		rw, rh := head.Reduced(f)
		dst := bytes.Repeat([]byte{0xee}, 3*rw*rh+8)
		if err := d.Decode(dst, file, head, f); err != nil {
			t.Fatal(err)
		}
		for y := range rh {
			for x := range rw {
				got := dst[3*(y*rw+x):]
				red, green := 255*min(w-1, x*f+f/2)/w, 255*min(h-1, y*f+f/2)/h
				if abs(int(got[0])-red) > 16 || abs(int(got[1])-green) > 16 || abs(int(got[2])-100) > 16 {
					t.Fatalf("1/%d: pixel %d, %d is %v, want about [%d %d 100]", f, x, y, got[:3], red, green)
				}
			}
		}
		if !bytes.Equal(dst[3*rw*rh:], bytes.Repeat([]byte{0xee}, 8)) {
			t.Errorf("1/%d: wrote outside", f)
		}
	}
}

func abs(v int) int { return max(v, -v) }

func TestDecodeGray(t *testing.T) {
	d := mustDecoder(t)
	m := image.NewGray(image.Rect(0, 0, 16, 16))
	for i := range m.Pix {
		m.Pix[i] = 77
	}
	file := imagetest.JPEG(t, m, 95)
	head, err := d.Header(file)
	dst := make([]byte, 3*256)
	if err != nil || !head.Supported() || d.Decode(dst, file, head, 1) != nil || dst[0] != 77 || dst[767] != 77 {
		t.Errorf("header %+v, error %v, pixels %v", head, err, dst[:3])
	}
}

// Damage is an error, never a crash, and the decoder remains usable.
func TestDecodeRefusesDamage(t *testing.T) {
	d := mustDecoder(t)
	file := ramp(t, 64, 64)
	head, err := d.Header(file)
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, 3*64*64)
	if err := d.Decode(dst, file[:len(file)/2], head, 1); err == nil {
		t.Error("half a file is no error")
	}
	for _, bad := range [][]byte{nil, {0xff}, []byte("no picture at all"), file[:30]} {
		if h, err := d.Header(bad); err == nil {
			t.Errorf("%d bytes have the header %+v", len(bad), h)
		}
	}
	for i := range file[:200] {
		cut := bytes.Clone(file)
		cut[i] ^= 0x55
		if h, err := d.Header(cut); err == nil && h.W <= 64 && h.H <= 64 {
			_ = d.Decode(dst, cut, h, 1)
		}
	}
	if err := d.Decode(dst, file, head, 1); err != nil {
		t.Errorf("after damage: %v", err)
	}
}

func BenchmarkDecode(b *testing.B) {
	d := mustDecoder(b)
	file := ramp(b, 500, 375)
	head, err := d.Header(file)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 3*500*375)
	for b.Loop() {
		if err := d.Decode(dst, file, head, 1); err != nil {
			b.Fatal(err)
		}
	}
}
