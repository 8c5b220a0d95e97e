package packed

import (
	"encoding/json"
	"image"
	"image/color"
	"os"
	"testing"

	"fspda/data/images"
	"fspda/internal/testing/realdata"
)

// pillow is testdata/pillow.json: means of each channel after scaling by Pillow's Lanczos filter.
type pillow struct {
	Generated []struct {
		W, H, N int
		Means   [3]float64
	}
	Sample map[string][3]float64 // at 256 pixels
}

func readPillow(t *testing.T) (p pillow) {
	t.Helper()
	b, err := os.ReadFile("testdata/pillow.json")
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// off returns how much the mean of each channel differs.
func off(p *images.RGB, want [3]float64) (d [3]float64) {
	for i, v := range p.Pix {
		d[i%3] += float64(v)
	}
	for c := range d {
		d[c] = d[c]/float64(p.W*p.H) - want[c]
	}
	return d
}

// meanOff checks the differences of many pictures: few thousandths of a level on average, and
// little in any picture. The two round differently: Pillow after each pass, we once.
func meanOff(t *testing.T, what string, all [][3]float64, each float64) {
	t.Helper()
	sum := 0.0
	for i, d := range all {
		for _, v := range d {
			if sum += v / float64(3*len(all)); v < -each || v > each {
				t.Errorf("%s %d: the means differ from Pillow's by %.3f", what, i, d)
			}
		}
	}
	t.Logf("%s: signed mean %.4f of %d pictures", what, sum, len(all))
	if sum < -0.05 || sum > 0.05 {
		t.Errorf("%s: the mean differs from Pillow's by %.3f, want at most 0.05", what, sum)
	}
}

// tiles returns an image with edges that do not reach black or white: there the order of the passes
// would matter, since both programs limit the values after each.
func tiles(w, h, n int) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		x, y, v := i%w, i/w, uint8(60)
		if (x/5+y/7+n)%2 == 0 {
			v = 190
		}
		m.Set(x, y, color.RGBA{v, uint8(17*n + x), uint8(5 * y), 255})
	}
	return m
}

func TestScaledLikePillow(t *testing.T) {
	var all [][3]float64
	for _, g := range readPillow(t).Generated {
		c := converter{settings: Settings{Size: 64}}
		c.rgb.SetImage(tiles(g.W, g.H, g.N))
		if small := c.scaled(); small != nil {
			c.rgb.SetImage(small)
		}
		all = append(all, off(&c.rgb, g.Means))
	}
	meanOff(t, "generated picture", all, 0.2)
}

// The same for 200 images of ImageNet, which are decoded here.
func TestPreparedLikePillow(t *testing.T) {
	want := readPillow(t).Sample
	s := source(t, prepare(t, source(t, realdata.Path(t, "imagenet-sample-200.tar")), Options{}))
	var all [][3]float64
	var p images.RGB
	for i := range s.Train.Len() {
		if err := s.Train.Image(&p, i); err != nil {
			t.Fatal(err)
		}
		all = append(all, off(&p, want[s.Train.Name(i)]))
	}
	meanOff(t, "image", all, 0.3)
}
