package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// The weights and the box have the values of the specification, for the numbers
// ((7k² + 3k + 1) mod 101)/101.
func TestBetaAndBox(t *testing.T) {
	for alpha, want := range map[float64]float64{0.2: 6.2092e-6, 1: 0.0833333333} {
		k := -1
		got := beta(func() float64 { k++; return float64((7*k*k+3*k+1)%101) / 101 }, alpha)
		if math.Abs(got-want) > 1e-5*want {
			t.Errorf("Beta(%v): %v, want %v", alpha, got, want)
		}
	}
	box, weight := cutBox(0.4, 32, 40, 5, 30)
	if box != (pixelBox{0, 15, 17, 40}) || weight != 0.66796875 {
		t.Errorf("box %v, weight %v, want rows 0 to 16, columns 15 to 39, 0.66796875", box, weight)
	}
}

// mixed returns a batch of the specimen set with a variation, and the same batch without mixing.
func mixed(t *testing.T, m mixing, step int) (got, plain device.Batch) {
	t.Helper()
	split := coloured(t, 30, CIFAR).Train
	split.erase = 0.5
	for dst, m := range map[*device.Batch]mixing{&got: m, &plain: {}} {
		split.mixing = m
		if err := split.gatherAugmented(dst, []int32{7, 0, 29, 3, 12}, nil, augmentKey{1, 2, step}, new(imageScratch),
			nil); err != nil {
			t.Fatal(err)
		}
	}
	return got, plain
}

// A mixed example is the mean of itself and the one before, as it was before mixing, or has a box of
// it, and its classes have the weights of both. One weight serves a batch.
func TestMixing(t *testing.T) {
	cuts, mixes := 0, 0
	for step := range 40 {
		for _, m := range []mixing{{mixup: 0.5}, {cutmix: 1}, {0.5, 1}} {
			got, plain := mixed(t, m, step)
			if plain.Mix != nil || len(got.Mix) != 5 || !slices.Equal(got.Y, plain.Y) {
				t.Fatalf("second classes %v and %v, labels %v and %v", got.Mix, plain.Mix, got.Y, plain.Y)
			}
			weight := got.Mix[0].Weight
			from, averaged := 0, true
			for i, v := range got.X {
				row := i / 90
				partner := (row + 4) % 5
				if got.Mix[row] != (device.Mix{Partner: plain.Y[partner], Weight: weight}) {
					t.Fatalf("example %d has second class %v, want %d and weight %v", row, got.Mix[row],
						plain.Y[partner], weight)
				}
				own, other := plain.X[i], plain.X[partner*90+i%90]
				mean := float32(weight*own) + float32((1-weight)*other)
				averaged = averaged && v == mean
				if v == other && v != own {
					from++
				}
				if v != own && v != other && v != mean {
					t.Fatalf("value %d is %v, of %v and %v with weight %v", i, v, own, other, weight)
				}
			}
			switch {
			case averaged && m.mixup > 0:
				mixes++
			case m.cutmix > 0:
				cuts++
				if most := int(math.Round(5 * 90 * float64(1-weight))); from > most {
					t.Errorf("%d values are the partner's, want at most %d with weight %v", from, most, weight)
				}
			default:
				t.Errorf("parameters %v: the batch is not averaged with weight %v", m, weight)
			}
		}
	}
	if mixes < 50 || mixes > 70 || cuts < 50 {
		t.Errorf("%d batches of mixup and %d of cutmix, want about 60 of each", mixes, cuts)
	}
}

// Weights have the mean and the variance of Beta(a, a): 1/2 and 1/(8a+4).
func TestBetaIsBeta(t *testing.T) {
	for _, a := range []float64{LeastMix, 0.2, 1, MostMix} {
		const n = 20000
		s := rng.New(1, "beta")
		sum, squares := 0.0, 0.0
		for range n {
			v := beta(s.Float64, a)
			sum, squares = sum+v, squares+(v-0.5)*(v-0.5)
		}
		if mean, want := squares/n, 1/(8*a+4); math.Abs(sum/n-0.5) > 0.02 || math.Abs(mean-want) > 0.05*want {
			t.Errorf("Beta(%v): mean %v, variance %v, want 0.5, %v", a, sum/n, mean, want)
		}
	}
}

// Mixing is for pictures, with parameters that can be drawn.
func TestMixingRefuses(t *testing.T) {
	set := coloured(t, 3, None)
	for _, m := range []mixing{{mixup: -1}, {cutmix: 5}, {mixup: 1e-4}, {mixup: math.NaN()}} {
		if err := set.setMixing(m); err == nil {
			t.Errorf("%v is accepted", m)
		}
	}
	set.Shape = set.Shape[:1]
	if err := set.setMixing(mixing{mixup: 1}); err == nil || !strings.Contains(err.Error(), "want pictures") {
		t.Errorf("error %v", err)
	}
}
