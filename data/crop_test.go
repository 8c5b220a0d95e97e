package data

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"fspda/data/images"
	"fspda/internal/rng"
)

// golden reads an image of testdata/resample.
func golden(t *testing.T, name string) images.RGB {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "resample", name))
	if err != nil {
		t.Fatal(err)
	}
	var p images.RGB
	if err := images.Decode(&p, file, 0); err != nil {
		t.Fatal(err)
	}
	return p
}

// Scaled boxes of an image agree with Pillow's up to one level: Pillow rounds between its two
// passes, we do not.
func TestResampleIsPillows(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "resample", "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases [][6]int
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	source := golden(t, "source.png")
	for i, c := range cases {
		want := golden(t, fmt.Sprintf("%d.png", i))
		side := min(c[4], c[5]) // we make squares: the middle of what is wider or higher
		left, top := (c[4]-side)/2, (c[5]-side)/2
		got := make([]uint8, 3*side*side)
		resample(new(resampler), got, source.Pix, 3*source.W, side, window{from: c[0], size: c[2], out: c[4],
			first: left}, window{from: c[1], size: c[3], out: c[5], first: top})
		differ := 0
		for y := range side {
			for j := range 3 * side {
				switch d := int(got[3*side*y+j]) - int(want.Pix[3*(want.W*(top+y)+left)+j]); {
				case d < -1 || d > 1:
					t.Fatalf("case %d: row %d, number %d differs by %d levels", i, y, j, d)
				case d != 0:
					differ++
				}
			}
		}
		if differ > side*side*3/5 {
			t.Errorf("case %d: %d of %d numbers differ by a level", i, differ, 3*side*side)
		}
	}
}

// The boxes have torchvision's distribution: area uniform between 8 % and 100 %, aspect ratio
// log-uniform between 3:4 and 4:3 as far as they fit, positions uniform.
func TestRandomBox(t *testing.T) {
	const w, h, draws = 500, 400, 20000
	var area, ratio, left float64
	for i := range draws {
		s := rng.New(1, "boxes", uint64(i))
		x, y, bw, bh := randomBox(&s, w, h)
		if x < 0 || y < 0 || bw < 1 || bh < 1 || x+bw > w || y+bh > h {
			t.Fatalf("box %d, %d, %d, %d outside", x, y, bw, bh)
		}
		a, r := float64(bw*bh)/(w*h), float64(bw)/float64(bh)
		if a < 0.079 || r < 0.74 || r > 1.35 {
			t.Fatalf("box of area %v and proportions %v", a, r)
		}
		area, ratio = area+a, ratio+math.Log(r)
		if bw < w {
			left += float64(x) / float64(w-bw)
		}
	}
	// The means of 20000 boxes of torchvision's RandomResizedCrop: large boxes that do not fit are
	// resampled, and wide ones fit a wide image better.
	if area /= draws; math.Abs(area-0.4520) > 0.008 {
		t.Errorf("mean area %v, want about 0.452", area)
	}
	if ratio /= draws; math.Abs(ratio-0.0279) > 0.006 {
		t.Errorf("mean logarithm of the proportions %v, want about 0.028", ratio)
	}
	if left /= draws; left < 0.48 || left > 0.52 {
		t.Errorf("mean place %v, want the middle", left)
	}
}

// An image that no box fits gives its centre, with the closest valid aspect ratio.
func TestRandomBoxOfStrips(t *testing.T) {
	for _, c := range []struct{ w, h, x, y, bw, bh int }{
		{3000, 30, 1480, 0, 40, 30}, {30, 3000, 0, 1480, 30, 40}, {1, 1, 0, 0, 1, 1},
	} {
		s := rng.New(3, "strip")
		x, y, bw, bh := randomBox(&s, c.w, c.h)
		if c.w*c.h > 1 && (bw > c.w || bh > c.h || x+bw > c.w || y+bh > c.h) {
			t.Fatalf("%d×%d: box %d, %d, %d, %d outside", c.w, c.h, x, y, bw, bh)
		}
		if c.w == 1 && (bw != 1 || bh != 1) {
			t.Errorf("one pixel gives %d×%d", bw, bh)
		}
		if c.w == 3000 && (x != c.x || y != c.y || bw != c.bw || bh != c.bh) {
			t.Errorf("%d×%d: box %d, %d, %d×%d, want %d, %d, %d×%d", c.w, c.h, x, y, bw, bh, c.x, c.y, c.bw, c.bh)
		}
	}
}

// The centre crop agrees with torchvision's Resize and CenterCrop.
func TestCentreCrop(t *testing.T) {
	for _, c := range []struct{ w, h, ow, oh, x, y int }{
		{500, 375, 341, 256, 58, 16}, {375, 500, 256, 341, 16, 58}, {100, 100, 256, 256, 16, 16}, {333, 500, 256, 384,
			16, 80}, {500, 377, 339, 256, 58, 16},
	} {
		across, down := centreCrop(c.w, c.h, 256, 224)
		if across != (window{size: c.w, out: c.ow, first: c.x}) || down != (window{size: c.h, out: c.oh, first: c.y}) {
			t.Errorf("%d×%d: %+v, %+v, want %d×%d from %d, %d", c.w, c.h, across, down, c.ow, c.oh, c.x, c.y)
		}
	}
}
