package data

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"fspda/data/images"
	"fspda/device"
	"fspda/internal/rng"
	"fspda/internal/testing/imagetest"
)

// shelf is a source of files in memory.
type shelf struct {
	files  [][]byte
	labels []int32
}

var _ images.Encoded = (*shelf)(nil)

func (s *shelf) Len() int          { return len(s.files) }
func (s *shelf) Label(i int) int32 { return s.labels[i] }
func (s *shelf) Name(i int) string { return fmt.Sprintf("shelf/%d", i) }
func (s *shelf) Bytes(int) int64   { return -1 }

func (s *shelf) Encoded(dst []byte, i int) ([]byte, error) { return append(dst, s.files[i]...), nil }

func (s *shelf) Image(dst *images.RGB, i int) error {
	if err := images.Decode(dst, s.files[i], 0); err != nil {
		return &images.PictureError{Path: "shelf", Name: fmt.Sprint(i), Err: err}
	}
	return nil
}

// rawShelf holds the same images, decoded.
type rawShelf struct {
	shelf
	images []images.RGB
}

var _ images.Raw = (*rawShelf)(nil)

func (s *rawShelf) Pixels(i int) ([]uint8, int, int) {
	return s.images[i].Pix, s.images[i].W, s.images[i].H
}

// newShelf returns n images of two classes and many sizes: JPEG except for every seventh, which is
// PNG, and every fifth, which is grey.
func newShelf(t testing.TB, n int) *shelf {
	t.Helper()
	s := &shelf{}
	for i := range n {
		st := rng.New(uint64(i), "shelf")
		w, h := 20+st.IntN(100), 20+st.IntN(100)
		m := image.NewNRGBA(image.Rect(0, 0, w, h))
		a, b := 1+st.IntN(9), 1+st.IntN(9)
		for p := range w * h {
			x, y := p%w, p/w
			m.SetNRGBA(x, y, color.NRGBA{uint8(a * x), uint8(b * y), uint8(x + y + 20*i), 255})
		}
		var file []byte
		switch {
		case i%7 == 6:
			file = imagetest.PNG(t, m)
		case i%5 == 4:
			grey := image.NewGray(m.Rect)
			for p := range grey.Pix {
				grey.Pix[p] = m.Pix[4*p]
			}
			file = imagetest.JPEG(t, grey, 75)
		default:
			file = imagetest.JPEG(t, m, 75)
		}
		s.files, s.labels = append(s.files, file), append(s.labels, int32(i%2))
	}
	return s
}

func mustImages(t testing.TB, train, test images.Source, o ImageOptions) *Set {
	t.Helper()
	s, err := FromImages("shelf", 2, train, test, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// The batches agree with the formula for any number of workers, any Ahead and any step of
// resumption.
func TestImagesDoNotDependOnWorkers(t *testing.T) {
	source := newShelf(t, 40)
	for _, jpeg := range []Decoder{GoJPEG, LibJPEG} {
		for _, augment := range []Augment{ImageNet, CIFAR, None} {
			var want []device.Batch
			for _, c := range []struct{ workers, first, ahead int }{{1, 0, 0}, {3, 0, 2}, {8, 4, 1}} {
				set := mustImages(t, source, source, ImageOptions{Crop: 24, Augment: augment, JPEG: jpeg,
					Workers: c.workers})
				l := mustLoader(t, set.Train, shardOf(13), 3, LoaderOptions{Batch: 5, Seed: 2, First: c.first,
					Ahead: c.ahead})
				got := play(t, l, 9-c.first)
				if want == nil {
					want = got
				}
				sameBatches(t, fmt.Sprintf("%s %s %d workers", jpeg, augment, c.workers), got, want[c.first:])
			}
		}
	}
}

// One image, step by step: box, scaling and values, for training and evaluation.
func TestImagesAreTheFormula(t *testing.T) {
	source := newShelf(t, 3)
	set := mustImages(t, source, source, ImageOptions{Crop: 24, ImageSize: 30, JPEG: LibJPEG,
		Mean: []float32{0, 0, 0}, Std: []float32{1, 1, 1}})
	var whole images.RGB
	if err := images.Decode(&whole, source.files[1], 0); err != nil {
		t.Fatal(err)
	}
	key := augmentKey{7, 2, 5}
	var varied, plain device.Batch
	if err := errors.Join(set.Train.gatherAugmented(&varied, []int32{2, 1}, nil, key, nil, nil),
		set.Test.Batch(&plain, 0, 3)); err != nil {
		t.Fatal(err)
	}
	stream := key.stream(1)
	x, y, w, h := randomBox(&stream, whole.W, whole.H)
	across := window{from: x, size: w, out: 24, mirror: stream.IntN(2) == 1}
	checkCrop(t, "training", varied, 1, resampleGo(whole.Pix, 3*whole.W, 24, across, window{from: y, size: h, out: 24}))

	ow, oh := 30, 30*whole.H/whole.W
	if whole.W > whole.H {
		ow, oh = 30*whole.W/whole.H, 30
	}
	across, down := window{size: whole.W, out: ow, first: (ow - 24) / 2}, window{size: whole.H, out: oh,
		first: (oh - 24) / 2}
	if (ow-24)%4 == 3 || (oh-24)%4 == 3 {
		t.Fatal("the middle is rounded up for this image: choose another")
	}
	checkCrop(t, "evaluation", plain, 1, resampleGo(whole.Pix, 3*whole.W, 24, across, down))
	if !slices.Equal(plain.Y, []int32{0, 1, 0}) || !slices.Equal(varied.Y, []int32{0, 1}) {
		t.Errorf("labels %v and %v", plain.Y, varied.Y)
	}
}

func checkCrop(t *testing.T, what string, b device.Batch, row int, want []uint8) {
	t.Helper()
	for i, v := range b.X[row*len(want):][:len(want)] {
		if d := 255*v - float32(want[i]); d > 0.01 || d < -0.01 {
			t.Fatalf("%s: number %d is %v, want %d/255", what, i, v, want[i])
		}
	}
}

// Decoded images give the same result as their files.
func TestRawImages(t *testing.T) {
	files := newShelf(t, 12)
	raw := &rawShelf{shelf: *files, images: make([]images.RGB, 12)}
	for i := range raw.images {
		if err := files.Image(&raw.images[i], i); err != nil {
			t.Fatal(err)
		}
		raw.files[i] = files.files[i]
	}
	o := ImageOptions{Crop: 24, JPEG: LibJPEG}
	take := func(s images.Source) []device.Batch {
		return play(t, mustLoader(t, mustImages(t, s, s, o).Train, sequence(12), 0, LoaderOptions{Batch: 6}), 4)
	}
	sameBatches(t, "raw", take(raw), take(files))
}

// A bad image is an error that names it, independent of scheduling, and Next keeps returning it.
func TestBadImagesFail(t *testing.T) {
	source := newShelf(t, 12)
	source.files[7] = source.files[7][:len(source.files[7])/2]
	source.files[9] = []byte("no image")
	for _, jpeg := range []Decoder{GoJPEG, LibJPEG} {
		for _, ahead := range []int{0, 2} {
			set := mustImages(t, source, source, ImageOptions{Crop: 24, JPEG: jpeg, Workers: 4})
			l := mustLoader(t, set.Train, []int32{7, 9}, 5, LoaderOptions{Batch: 2, Sampling: Full, Ahead: ahead})
			for range 3 {
				_, err := l.Next()
				var bad *images.PictureError
				if !errors.As(err, &bad) || bad.Name != "7" || !strings.Contains(err.Error(),
					"batch of agent 5 at step 0") || !strings.Contains(err.Error(), "on_bad skip") {
					t.Fatalf("error %v, want one about picture 7", err)
				}
			}
			l.Close()
			if err := set.Test.Batch(new(device.Batch), 8, 10); err == nil || !strings.Contains(err.Error(),
				"picture 9") {
				t.Errorf("error %v, want one about image 9", err)
			}
		}
	}
}

// If bad images are skipped, the next example replaces them, with its label, and each is reported
// once.
func TestBadImagesAreSkipped(t *testing.T) {
	good, source := newShelf(t, 12), newShelf(t, 12)
	source.files[2] = source.files[2][:40]
	source.files[4], source.files[5] = nil, []byte{0xff, 0xd8}
	o := ImageOptions{Crop: 24, JPEG: GoJPEG, OnBad: Skip, Workers: 3}
	set := mustImages(t, source, source, o)
	var reports int
	set.OnSkip(func(error) { reports++ })
	var got, want device.Batch
	key := augmentKey{1, 0, 4}
	for range 2 {
		if err := set.Train.gatherAugmented(&got, []int32{2, 4, 5, 6, 3}, nil, key, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := mustImages(t, good, good, o).Train.gatherAugmented(&want, []int32{6, 6, 6, 6, 3}, nil, key, nil,
		nil); err != nil {
		t.Fatal(err)
	}
	sameBatches(t, "skipped", []device.Batch{got}, []device.Batch{want})
	if bad := set.Bad(); len(bad) != 3 || reports != 3 || !strings.Contains(bad[0].Error(), "picture 2") {
		t.Errorf("%d reports of %v, want 3", reports, bad)
	}
	if err := errors.Join(set.Test.Gather(&got, []int32{4, 5, 2}), mustImages(t, good, good, o).Test.Gather(&want,
		[]int32{6, 6, 3})); err != nil {
		t.Fatal(err)
	}
	sameBatches(t, "a batch of bad images", []device.Batch{got}, []device.Batch{want})
	if !set.Test.Bad(4) || set.Test.Bad(6) {
		t.Error("images 4 and 6 are not known as bad and good")
	}
}

// With any bad images, batches of any size have good images of the agent's shard in their places,
// the same after a resume; a shard without a good image is an error.
func TestAnyBadImages(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for n := range 60 {
		source, bad := newShelf(t, 12), map[int32]bool{}
		source.labels = sequence(12)
		for range r.IntN(12) {
			i := r.IntN(12)
			bad[int32(i)] = true
			source.files[i] = [][]byte{nil, {0xff, 0xd8}, source.files[i][:len(source.files[i])/2]}[r.IntN(3)]
		}
		var shard []int32
		good := map[int32]bool{} // labels of the good images of the shard
		for i := range int32(12) {
			if r.IntN(2) == 0 || i == 11 {
				shard = append(shard, i)
				good[i] = !bad[i]
			}
		}
		o := ImageOptions{Crop: 24, JPEG: GoJPEG, OnBad: Skip, Workers: 2}
		batch := 1 + r.IntN(len(shard))
		var runs [2][]device.Batch
		for run := range runs {
			for first := 0; first < 6; first += 6 / (1 + run) { // the second run is resumed once
				set, err := FromImages("shelf", 12, source, source, o)
				if err != nil {
					t.Fatal(err)
				}
				l, err := NewLoader(set.Train, shard, 0, LoaderOptions{Batch: batch,
					Sampling: Epochs, Seed: uint64(n), First: first, Ahead: 2 * run})
				if err != nil {
					t.Fatal(err)
				}
				for range 6 / (1 + run) {
					b, err := l.Next()
					if none := !slices.Contains(slices.Collect(maps.Values(good)), true); none != (err != nil) {
						t.Fatalf("bad images %v of shard %v: %v", bad, shard, err)
					}
					if err != nil {
						break
					}
					for _, y := range b.Y {
						if !good[y] {
							t.Fatalf("bad images %v of shard %v: a batch has label %d", bad, shard, y)
						}
					}
					runs[run] = append(runs[run], device.Batch{X: slices.Clone(b.X), Y: slices.Clone(b.Y), Key: b.Key})
					l.Release(b)
				}
				l.Close()
			}
		}
		sameBatches(t, "resumed", runs[1], runs[0])
	}
}

// The resources of training are bounded: at most one image per worker, at most the requested
// batches; Close ends all.
func TestImageLoaderIsBoundedAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newShelf(t, 12)
		set := mustImages(t, source, source, ImageOptions{Crop: 24, JPEG: GoJPEG, Workers: 2})
		l, err := NewLoader(set.Train, sequence(12), 0, LoaderOptions{Batch: 4, Ahead: 2})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(l.ready) != 3 || len(l.free) != 0 || len(set.Train.images.pool) != 2 {
			t.Errorf("%d batches ready, %d free, scratch memory for %d goroutines in the pool; want 3, 0, 2",
				len(l.ready), len(l.free), len(set.Train.images.pool))
		}
		held := <-set.Train.images.pool // a loader that waits for scratch memory can be closed
		other := <-set.Train.images.pool
		b, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		l.Release(b)
		synctest.Wait()
		l.Close()
		set.Train.images.pool <- held
		set.Train.images.pool <- other
	})
}

func TestFromImagesRefuses(t *testing.T) {
	source := newShelf(t, 4)
	wrong := &shelf{files: source.files, labels: []int32{0, 1, 2, 0}}
	for _, c := range []struct {
		train images.Source
		o     ImageOptions
		want  string
	}{
		{source, ImageOptions{Crop: -1}, "crop of -1 pixels"},
		{source, ImageOptions{Crop: 64, ImageSize: 63}, "image size of 63 pixels, want 64, the crop"},
		{source, ImageOptions{OnBad: "ignore"}, `unknown handling "ignore" of bad images, want fail or skip`},
		{source, ImageOptions{JPEG: "mozjpeg"}, `decoder "mozjpeg" is not known, want auto, libjpeg, go, turbo`},
		{source, ImageOptions{Augment: "x"}, `augmentation "x"`},
		{source, ImageOptions{Workers: -2}, "-2 workers"},
		{wrong, ImageOptions{}, "train images: label 2 of example 2, want 0 to 1"},
		{&shelf{}, ImageOptions{}, "train images: there are none"},
	} {
		if _, err := FromImages("x", 2, c.train, source, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// The fingerprint depends on labels, names, options and the decoder, and needs no image.
func TestImageFingerprint(t *testing.T) {
	source := newShelf(t, 4)
	print := func(s images.Source, o ImageOptions) string { return mustImages(t, s, s, o).Fingerprint() }
	base := print(source, ImageOptions{JPEG: GoJPEG})
	if again := print(&shelf{files: make([][]byte, 4), labels: source.labels},
		ImageOptions{JPEG: GoJPEG}); again != base || !strings.HasSuffix(base, "-go") {
		t.Errorf("fingerprints %s and %s, want the same, of decoder go", base, again)
	}
	for what, other := range map[string]string{
		"label": print(&shelf{files: source.files, labels: []int32{0, 1, 1, 1}}, ImageOptions{JPEG: GoJPEG}),
		"crop":  print(source, ImageOptions{JPEG: GoJPEG, Crop: 32}),
		"size":  print(source, ImageOptions{JPEG: GoJPEG, ImageSize: 300}),
	} {
		if other == base {
			t.Errorf("another %s has the same fingerprint", what)
		}
	}
	for _, same := range []Decoder{"", AutoDecoder, LibJPEG, Turbo} {
		if other := print(source, ImageOptions{JPEG: same}); other != strings.TrimSuffix(base, "-go")+"-libjpeg" {
			t.Errorf("fingerprint %s of decoder %q, want that of %s with libjpeg", other, same, base)
		}
	}
}

// BenchmarkPacked measures crops of decoded images that are not in the caches.
func BenchmarkPacked(b *testing.B) {
	raw := &rawShelf{}
	for i := range 300 {
		raw.images = append(raw.images, images.RGB{W: 341, H: 256, Pix: noiseImage(341, 256, uint64(i))})
		raw.labels, raw.files = append(raw.labels, 0), append(raw.files, nil)
	}
	set := mustImages(b, raw, raw, ImageOptions{})
	l := mustLoader(b, set.Train, sequence(300), 0, LoaderOptions{Batch: 30})
	for i := 0; b.Loop(); i++ {
		batch, err := l.Next()
		if err != nil {
			b.Fatal(err)
		}
		l.Release(batch)
	}
	b.ReportMetric(30*float64(b.N)/b.Elapsed().Seconds(), "crops/s")
}
