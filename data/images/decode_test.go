package images

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fspda/internal/testing/imagetest"
)

// Decoded images are exactly those of Pillow, except for JPEG that image/jpeg decodes (CMYK):
// it rounds the inverse cosine transform differently, which the standard leaves open.
// ±1 in a plane is up to ±2 in a colour, while CMYK has no conversion that adds to it.
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
		switch filepath.Base(name) {
		case "cmyk-adobe.jpg", "cmyk-plain.jpg":
			allowed = 3
		case "lossy.webp", "lossy-alpha.webp", "animated-lossy.webp", "animated-lossy-alpha.webp":
			// libwebp interpolates chroma with other rounding
			allowed = 3
		}
		if most > allowed || off > 0.3 {
			t.Errorf("%s: differs by up to %d, on average %.2f", name, most, off)
		}
	}
}

// Decoding a box gives the same pixels as decoding the whole.
func TestDecodeBox(t *testing.T) {
	files, err := filepath.Glob("testdata/decode/*.rgb")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var d Decoder // shared, as in a worker
	for _, golden := range files {
		var whole, part RGB
		name := strings.TrimSuffix(golden, ".rgb")
		file := read(t, name)
		if err := Decode(&whole, file, 0); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			w, h, err := d.Open(file, 0)
			if err != nil || w != whole.W || h != whole.H {
				t.Fatalf("%s: %d×%d, %v", name, w, h, err)
			}
			x, y := r.IntN(w), r.IntN(h)
			box := image.Rect(x, y, x+1+r.IntN(w-x), y+1+r.IntN(h-y))
			if err := d.Decode(&part, box); err != nil || part.W != box.Dx() || part.H != box.Dy() {
				t.Fatalf("%s, %v: %d×%d, %v", name, box, part.W, part.H, err)
			}
			for k := range part.H {
				if want := whole.Pix[3*(w*(y+k)+x):][:3*part.W]; !bytes.Equal(part.Pix[3*part.W*k:][:3*part.W], want) {
					t.Fatalf("%s, %v: row %d is %v, want %v", name, box, k, part.Pix[3*part.W*k:][:3*part.W], want)
				}
			}
		}
	}
}

// The assembly has the bits of the Go code, at any number of samples, and writes nothing beyond.
func TestRowTwins(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func(n int) []uint8 {
		b := make([]uint8, n)
		for i := range b {
			b[i] = uint8(r.Uint32() | r.Uint32()*uint32(i&1)) // many extremes
		}
		return b
	}
	for n := 1; n < 100; n++ {
		ys, cbs, crs := random(n), random(n), random(n)
		got, want := make([]uint8, 3*n+64), make([]uint8, 3*n+64)
		fromYCbCr(got, ys, cbs, crs)
		fromYCbCrGo(want, ys, cbs, crs)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d pixels: %v, want %v", n, got, want)
		}
		gotSums, wantSums := make([]int16, n+34), make([]int16, n+34)
		weighSum(gotSums[1:], cbs, crs)
		weighSumGo(wantSums[1:], cbs, crs)
		if !slices.Equal(gotSums, wantSums) {
			t.Fatalf("%d sums: %v, want %v", n, gotSums, wantSums)
		}
		clear(got)
		clear(want)
		interpolate(got, gotSums[:n+2], 8, 7, 4)
		interpolateGo(want, gotSums[:n+2], 8, 7, 4)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d samples: %v, want %v", n, got, want)
		}
	}
	// every chroma
	for cb := range 256 {
		cbs, crs := bytes.Repeat([]byte{uint8(cb)}, 256), make([]uint8, 256)
		for cr := range crs {
			crs[cr] = uint8(cr)
		}
		got, want := make([]uint8, 768), make([]uint8, 768)
		fromYCbCr(got, bytes.Repeat([]byte{128}, 256), cbs, crs)
		fromYCbCrGo(want, bytes.Repeat([]byte{128}, 256), cbs, crs)
		if !bytes.Equal(got, want) {
			t.Fatalf("cb %d: %v, want %v", cb, got, want)
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
	u := upsampler{w: 3, sums: []int16{0, 10, 20, 31, 0}}
	u.double(dst, 1, 2, 2)
	if want := []uint8{10, 13, 17, 23, 28, 31}; !bytes.Equal(dst, want) {
		t.Errorf("%v, want %v", dst, want)
	}
	u.sums = []int16{0, 40, 80, 124, 0}
	u.double(dst, 8, 7, 4)
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
		{"text", []byte("<html>not found"), "neither JPEG, PNG, GIF, WebP nor BMP but text/html"},
		{"pdf", []byte("%PDF-1.7"), "but application/pdf"},
		{"gif", []byte("GIF89a......"), "damaged: gif: "},
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

// bmpOf returns a BMP that claims a size and has no pixels.
func bmpOf(w, h uint32) []byte {
	b := append([]byte("BM"), make([]byte, 12)...)
	b[10] = 54 // where pixels begin
	for _, v := range []uint32{40, w, h, 24<<16 | 1, 0, 0, 0, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

// A header that claims 60,000×60,000 pixels costs no memory.
func TestDecodeRefusesBombs(t *testing.T) {
	for name, bomb := range map[string][]byte{"png": pngOf(60000, 60000), "jpeg": jpegOf(t, 60000, 60000),
		"png of 2^31": pngOf(1<<31-1, 1<<31-1),
		"gif":         []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"),
		"webp":        []byte("RIFF\x1e\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x80\x00"),
		"lossless":    []byte("RIFF\x12\x00\x00\x00WEBPVP8L\x05\x00\x00\x00\x2f\xff\xff\xff\x0f\x00"),
		"bmp":         bmpOf(60000, 60000),
	} {
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
	files, _ := filepath.Glob("testdata/decode/*[gfp]") // the pattern is well-formed
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
