package data

import (
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"fspda/internal/rng"
)

// mustSynthetic draws a set for a test.
func mustSynthetic(t testing.TB, o SyntheticOptions) *Set {
	t.Helper()
	s, err := Synthetic(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// For visual inspection of the digits: FSPDA_SHEET=folder go test -run Sheet writes them there, ten
// rows of twenty.
func TestSheet(t *testing.T) {
	dir := os.Getenv("FSPDA_SHEET")
	if dir == "" {
		t.Skip("set FSPDA_SHEET to a folder to have a sheet of digits written there")
	}
	const rows, columns, zoom = digits, 20, 2
	set := mustSynthetic(t, SyntheticOptions{Train: 2000, Test: 10, Seed: 1})
	sheet := image.NewGray(image.Rect(0, 0, columns*side*zoom, rows*side*zoom))
	var filled [digits]int
	for i, y := range set.Train.Labels {
		if filled[y] == columns {
			continue
		}
		x0, y0 := filled[y]*side*zoom, int(y)*side*zoom
		for j := range pixels * zoom * zoom {
			px, py := j%(side*zoom), j/(side*zoom)
			sheet.SetGray(x0+px, y0+py, color.Gray{Y: set.Train.Pixels[i*pixels+py/zoom*side+px/zoom]})
		}
		filled[y]++
	}
	path := filepath.Join(dir, "digits.png")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(f, sheet); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s", path)
}

func TestSyntheticDoesNotDependOnCores(t *testing.T) {
	o := SyntheticOptions{Train: 500, Test: 77, Seed: 9}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	one := mustSynthetic(t, o)
	runtime.GOMAXPROCS(4)
	four := mustSynthetic(t, o)
	if one.Fingerprint() != four.Fingerprint() {
		t.Error("one core and four drew different sets")
	}
	o.Seed++
	if other := mustSynthetic(t, o); slices.Equal(other.Train.Pixels, one.Train.Pixels) {
		t.Error("another seed drew the same set")
	}
	if slices.Equal(one.Train.Pixels[:77*pixels], one.Test.Pixels) {
		t.Error("the two splits are the same")
	}
}

// The drawn set must be equal on all machines and in all versions: change this number only on
// purpose.
func TestSyntheticIsPinned(t *testing.T) {
	const want = "aa183714a988af85632469859b33b0b7"
	if got := mustSynthetic(t, SyntheticOptions{Train: 200, Test: 50, Seed: 1}).Fingerprint(); got != want {
		t.Errorf("the drawing changed: fingerprint %s, want %s", got, want)
	}
}

func TestSyntheticClassesAreEqual(t *testing.T) {
	set := mustSynthetic(t, SyntheticOptions{Train: 1003, Test: 17, Seed: 2})
	for name, half := range map[string]Split{"train": set.Train, "test": set.Test} {
		count := make([]int, digits)
		for _, y := range half.Labels {
			count[y]++
		}
		if slices.Max(count)-slices.Min(count) > 1 {
			t.Errorf("%s: class counts %v, want equal up to one", name, count)
		}
		if slices.IsSorted(half.Labels[:10]) {
			t.Errorf("%s: labels begin %v, want a random order", name, half.Labels[:10])
		}
	}
}

// An example drawn separately equals the one in the set, and a smaller set is a prefix of a larger
// one.
func TestSyntheticExampleIsAFunctionOfItsNumber(t *testing.T) {
	set := mustSynthetic(t, SyntheticOptions{Train: 300, Test: 1, Seed: 6})
	if small := mustSynthetic(t, SyntheticOptions{Train: 77, Test: 1, Seed: 6}); !slices.Equal(small.Train.Labels,
		set.Train.Labels[:77]) || !slices.Equal(small.Train.Pixels, set.Train.Pixels[:77*pixels]) {
		t.Error("77 examples are not the first 77 of 300")
	}
	var p pen
	alone := make([]uint8, pixels)
	for _, i := range []int{0, 63, 64, 299} {
		p.draw(alone, int(set.Train.Labels[i]), rng.New(6, "synthetic", 0, uint64(i)))
		if !slices.Equal(alone, set.Train.Pixels[i*pixels:(i+1)*pixels]) {
			t.Errorf("example %d drawn alone differs", i)
		}
	}
}

// The pixel distribution is close to that of MNIST, so its normalization and step sizes fit.
func TestSyntheticMoments(t *testing.T) {
	mean, std := moments(mustSynthetic(t, SyntheticOptions{Train: 2000, Test: 1, Seed: 1}).Train.Pixels)
	if math.Abs(mean-mnistMean) > 0.02 || math.Abs(std-mnistStd) > 0.03 {
		t.Errorf("mean %.4f and std %.4f, want near 0.1307 and 0.3081", mean, std)
	}
}

func TestSyntheticSizes(t *testing.T) {
	for _, o := range []SyntheticOptions{{Train: -1}, {Test: -1}, {Train: maxSynthetic + 1}} {
		if _, err := Synthetic(o); err == nil || !strings.Contains(err.Error(), "want 1 to 10000000 each") {
			t.Errorf("%+v: error %v, want one about the sizes", o, err)
		}
	}
	if set := mustSynthetic(t, SyntheticOptions{}); set.Train.Len() != defaultTrain || set.Test.Len() != defaultTest {
		t.Errorf("%d and %d examples, want the defaults", set.Train.Len(), set.Test.Len())
	}
}

func BenchmarkDraw(b *testing.B) {
	var p pen
	dst := make([]uint8, pixels)
	i := 0
	for b.Loop() {
		p.draw(dst, i%digits, rng.New(1, "synthetic", 0, uint64(i)))
		i++
	}
}
