package data

import (
	"bytes"
	"slices"
	"testing"

	"fspda/device"
)

// coloured returns a set of n different training examples of 6×5 pixels in three channels.
func coloured(t testing.TB, n int, augment Augment) *Set {
	t.Helper()
	e := Examples{Pixels: make([]uint8, n*90), Labels: make([]int32, n)}
	for i := range e.Pixels {
		e.Pixels[i] = uint8(1 + i*7%251)
	}
	s, err := NewChannels("coloured", []int{6, 5, 3}, 2, []float32{0.25, 0.5, 0.75}, []float32{0.5, 1, 2}, e, e)
	if err != nil {
		t.Fatal(err)
	}
	s.Train.augment = augment
	return s
}

// shift and flip agree with the pixel-wise formula, for every shift of a 6×5 image.
func TestShiftAndFlip(t *testing.T) {
	shape := [3]int{6, 5, 3}
	src := coloured(t, 1, None).Train.Pixels
	at := func(p []uint8, y, x int) []uint8 {
		if y < 0 || y >= shape[0] || x < 0 || x >= shape[1] {
			return []uint8{0, 0, 0}
		}
		return p[3*(y*shape[1]+x):][:3]
	}
	got, mirrored := make([]uint8, 90), make([]uint8, 90)
	for down := -7; down <= 7; down++ {
		for right := -7; right <= 7; right++ {
			shift(got, src, shape, down, right)
			copy(mirrored, got)
			flip(mirrored, shape)
			for y := range shape[0] {
				for x := range shape[1] {
					if want := at(src, y-down, x-right); !bytes.Equal(at(got, y, x), want) ||
						!bytes.Equal(at(mirrored, y, shape[1]-1-x), want) {
						t.Fatalf("moved by %d, %d: pixel %d, %d is %v and mirrored %v, want %v", down, right, y, x,
							at(got, y, x), at(mirrored, y, shape[1]-1-x), want)
					}
				}
			}
		}
	}
}

// The augmentation of an example depends on exactly seed, agent, step and position; evaluation sees
// the original.
func TestVariationIsKeyed(t *testing.T) {
	split := coloured(t, 1, CIFAR).Train
	shard := []int32{0}
	at := func(seed uint64, agent, step int) []float32 {
		l := mustLoader(t, split, shard, agent, LoaderOptions{Batch: 1, Seed: seed, First: step})
		return play(t, l, 1)[0].X
	}
	base := at(1, 2, 3)
	if !slices.Equal(base, at(1, 2, 3)) {
		t.Error("the same key gives different images")
	}
	for what, other := range map[string][]float32{"seed": at(2, 2, 3), "agent": at(1, 3, 3), "step": at(1, 2, 4)} {
		if slices.Equal(base, other) {
			t.Errorf("another %s gives the same image", what)
		}
	}
	var two, eval device.Batch
	if err := split.gatherAugmented(&two, []int32{0, 0}, nil, augmentKey{1, 2, 3}, new(imageScratch), nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(two.X[:90], base) || slices.Equal(two.X[90:], base) {
		t.Error("the position does not count")
	}
	var outside device.Batch
	if err := split.GatherAugmented(&outside, shard, 1, 2, 3); err != nil || !slices.Equal(outside.X, base) {
		t.Errorf("outside of a loader the same key gives another image, %v", err)
	}
	if err := split.GatherAugmented(&outside, shard, 1, -1, 3); err != nil || slices.Equal(outside.X, base) {
		t.Errorf("no agent sees the same image, %v", err)
	}
	if err := split.Gather(&eval, shard); err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 90)
	split.norm.applyGo(want, split.Pixels)
	if !slices.Equal(eval.X, want) {
		t.Error("evaluation sees a varied image")
	}
}

// All 81 shifts occur about equally often, and half of the images are mirrored.
func TestVariationIsUniform(t *testing.T) {
	// one bright pixel left of the middle reveals the shift and the mirror
	src := make([]uint8, 11*11)
	src[5*11+4] = 1
	dst := make([]uint8, len(src))
	var count [11 * 11]int
	const draws = 16200
	for i := range draws {
		s := augmentKey{1, 0, i}.stream(0)
		shifted(dst, src, [3]int{11, 11, 1}, &s)
		count[bytes.IndexByte(dst, 1)]++
	}
	for y := 1; y <= 9; y++ {
		// Column x holds images shifted right by x-4, and mirrored ones shifted by 10-x-4.
		for x := range 11 {
			ways := 0
			if x <= 8 {
				ways++
			}
			if 10-x <= 8 {
				ways++
			}
			if want := draws / 162 * ways; count[y*11+x] < want-60*ways || count[y*11+x] > want+60*ways {
				t.Errorf("row %d, column %d: %d times, want about %d", y, x, count[y*11+x], want)
			}
		}
	}
}

// Augmented batches are a pure function of the step too, and a run resumes in the middle of an
// epoch.
func TestVariedLoaderResumes(t *testing.T) {
	split := coloured(t, 40, CIFAR).Train
	o := LoaderOptions{Batch: 9, Seed: 5}
	want := play(t, mustLoader(t, split, shardOf(13), 6, o), 11)
	for _, c := range []struct{ first, ahead int }{{0, 3}, {4, 0}, {5, 2}} {
		o.First, o.Ahead = c.first, c.ahead
		sameBatches(t, "varied", play(t, mustLoader(t, split, shardOf(13), 6, o), 11-c.first), want[c.first:])
	}
}

func BenchmarkVaried(b *testing.B) {
	e := Examples{Pixels: make([]uint8, 2000*cifarPixels), Labels: make([]int32, 2000)}
	s, err := NewChannels("noise", []int{32, 32, 3}, 10, cifarMean, cifarStd, e, e)
	if err != nil {
		b.Fatal(err)
	}
	for _, s.Train.augment = range []Augment{None, CIFAR} {
		b.Run(string(s.Train.augment), func(b *testing.B) {
			var dst device.Batch
			buf := new(imageScratch)
			for i := 0; b.Loop(); i++ {
				_ = s.Train.gatherAugmented(&dst, []int32{int32(i % 2000)}, nil, augmentKey{1, 2, i}, buf, nil)
			}
		})
	}
}
