package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"fspda/data/images/imagetest"
)

// Decoded images agree with Pillow: PNG exactly; JPEG except for the rounding of the inverse cosine
// transform, which the standard leaves open: ±1 in a plane is up to ±2 in a colour, while CMYK has
// no conversion that adds to it.
func TestDecodeLooksAsInPillow(t *testing.T) {
	files, err := filepath.Glob("testdata/decode/*.rgb")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, golden := range files {
		name := strings.TrimSuffix(golden, ".rgb")
		var p RGB
		if err := Decode(&p, read(t, name), 0); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		most, off := difference(p.Pix, read(t, golden))
		allowed := 0
		if filepath.Ext(name) == ".jpg" {
			allowed = 3
		}
		if most > allowed || off > 0.3 {
			t.Errorf("%s: differs by up to %d, on average %.2f", name, most, off)
		}
	}
}

// difference returns the largest and the mean difference of two images; 256 if their sizes differ.
func difference(a, b []uint8) (most int, mean float64) {
	if len(a) != len(b) {
		return 256, 256
	}
	sum := 0
	for i := range a {
		d := max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
		sum += d
		most = max(most, d)
	}
	return most, float64(sum) / float64(len(a))
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDecode16BitGreyKeepsTheUpperByte(t *testing.T) {
	m := image.NewGray16(image.Rect(0, 0, 3, 1))
	for x, v := range []uint16{0x0001, 0x1234, 0xfeff} {
		m.SetGray16(x, 0, color.Gray16{Y: v})
	}
	var p RGB
	if err := Decode(&p, imagetest.PNG(t, m), 0); err != nil ||
		!bytes.Equal(p.Pix, []uint8{0, 0, 0, 0x12, 0x12, 0x12, 0xfe, 0xfe, 0xfe}) {
		t.Errorf("%v, %v", p.Pix, err)
	}
}

// libjpeg's filter for halved chroma, for one row computed by hand: 3/4 and 1/4, rounded down and
// up alternately.
func TestUpsampleByHand(t *testing.T) {
	dst := make([]uint8, 6)
	double(dst, []uint8{10, 20, 31})
	if want := []uint8{10, 13, 17, 23, 28, 31}; !bytes.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
	doubleSums(dst, []int32{40, 80, 124})
	if want := []uint8{10, 12, 18, 23, 28, 31}; !bytes.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
}

// All subsampling ratios, at sizes around the blocks: an image of one colour keeps it, and nothing
// panics.
func TestUpsampleEveryRatio(t *testing.T) {
	for r := image.YCbCrSubsampleRatio444; r <= image.YCbCrSubsampleRatio410; r++ {
		for w := 1; w < 10; w++ {
			for h := 1; h < 10; h++ {
				m := image.NewYCbCr(image.Rect(0, 0, w, h), r)
				fill(m.Y, 120)
				fill(m.Cb, 90)
				fill(m.Cr, 200)
				var p RGB
				p.SetImage(m)
				for i, v := range p.Pix {
					if want := [3]uint8{221, 82, 53}[i%3]; v != want {
						t.Fatalf("%v %d×%d: pixel %d is %d, want %d", r, w, h, i, v, want)
					}
				}
			}
		}
	}
}

func fill(b []uint8, v uint8) {
	for i := range b {
		b[i] = v
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := read(t, "testdata/decode/420.jpg")
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"empty", nil, "an empty file"},
		{"text", []byte("<html>not found"), "neither JPEG nor PNG but text/html"},
		{"gif", []byte("GIF89a......"), "neither JPEG nor PNG but image/gif"},
		{"cut in the header", good[:30], "cut off in its header"},
		{"cut in the pixels", good[:len(good)-100], "damaged: invalid JPEG"},
		{"no frame", []byte("\xff\xd8\xff\xda\x00\x02\x00\x00"), "without a frame header"},
		{"cut PNG", read(t, "testdata/decode/rgb.png")[:120], "damaged: "},
		{"no size", pngOf(0, 5), "no size"},
	} {
		err := Decode(new(RGB), c.content, 0)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// pngOf returns a PNG that claims a size and has no pixels.
func pngOf(w, h uint32) []byte {
	b := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	b = binary.BigEndian.AppendUint32(b, w)
	b = binary.BigEndian.AppendUint32(b, h)
	b = append(b, 8, 2, 0, 0, 0)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[12:]))
}

// jpegOf returns a JPEG with another size in its header.
func jpegOf(t testing.TB, w, h uint16) []byte {
	b := bytes.Clone(read(t, "testdata/decode/420.jpg"))
	at := bytes.Index(b, []byte{0xff, 0xc0})
	binary.BigEndian.PutUint16(b[at+5:], h)
	binary.BigEndian.PutUint16(b[at+7:], w)
	return b
}

// A header that claims 60,000×60,000 pixels costs no memory.
func TestDecodeRefusesBombs(t *testing.T) {
	for name, bomb := range map[string][]byte{"png": pngOf(60000, 60000), "jpeg": jpegOf(t, 60000, 60000),
		"png of 2^31": pngOf(1<<31-1, 1<<31-1)} {
		var large *TooLargeError
		var err error
		if n := allocated(func() { err = Decode(new(RGB), bomb, 0) }); !errors.As(err, &large) || n > 1<<16 {
			t.Errorf("%s: error %v after %d bytes, want a TooLargeError", name, err, n)
		}
	}
	if err := Decode(new(RGB), read(t, "testdata/decode/420.jpg"), 37*29); err != nil {
		t.Errorf("a picture just as large as allowed: %v", err)
	}
	if err := Decode(new(RGB), read(t, "testdata/decode/420.jpg"), 37*29-1); err == nil {
		t.Error("a picture of a pixel too many was decoded")
	}
}

// allocated is how many bytes a call allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// For any input: no panic, and no more pixels than allowed.
func FuzzDecode(f *testing.F) {
	files, _ := filepath.Glob("testdata/decode/*g") // the pattern is well-formed
	for _, name := range files {
		f.Add(read(f, name))
	}
	f.Add(pngOf(60000, 60000))
	f.Add([]byte("\xff\xd8\xff\xc0\x00\x0b\x08\xff\xff\xff\xff\x04"))
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 1 << 16
		var p RGB
		if err := Decode(&p, b, most); err == nil && (p.W < 1 || p.H < 1 || p.W*p.H > most || len(p.Pix) != 3*p.W*p.H) {
			t.Errorf("%d×%d with %d bytes", p.W, p.H, len(p.Pix))
		}
	})
}
