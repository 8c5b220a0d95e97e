package data

import (
	"math"
	"os"
	"testing"

	"fspda/internal/rng"
)

// learner is a small network for tests: softmax regression, or with hidden > 0 one hidden layer of
// sigmoids. Its inputs are pixel/255, not normalized, so that zeros can be skipped.
type learner struct {
	hidden   int
	w1, b1   []float32 // features×hidden, hidden
	w2, b2   []float32 // digits×width, digits
	act, dac []float32
	out      [digits]float32
}

func newLearner(hidden int, seed uint64) *learner {
	s := rng.New(seed, "learner")
	draw := func(n, fan int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = (2*s.Float32() - 1) / float32(math.Sqrt(float64(fan)))
		}
		return v
	}
	width := pixels
	if hidden > 0 {
		width = hidden
	}
	return &learner{hidden: hidden, w1: draw(pixels*hidden, pixels), b1: make([]float32, hidden),
		w2: draw(digits*width, width),
		b2: make([]float32, digits), act: make([]float32, width), dac: make([]float32, width)}
}

// predict computes class probabilities and returns the most probable class.
func (l *learner) predict(x []uint8) int {
	if l.hidden == 0 {
		for i, p := range x {
			l.act[i] = float32(p) / 255
		}
	} else {
		copy(l.act, l.b1)
		for i, p := range x {
			if p != 0 {
				v := float32(p) / 255
				for j, w := range l.w1[i*l.hidden : (i+1)*l.hidden] {
					l.act[j] += v * w
				}
			}
		}
		for j, a := range l.act {
			l.act[j] = 1 / (1 + float32(math.Exp(-float64(a))))
		}
	}
	best, sum := 0, float32(0)
	for c := range l.out {
		z := l.b2[c]
		for j, w := range l.w2[c*len(l.act) : (c+1)*len(l.act)] {
			z += w * l.act[j]
		}
		if l.out[c] = z; z > l.out[best] {
			best = c
		}
	}
	top := l.out[best]
	for c, z := range l.out {
		l.out[c] = float32(math.Exp(float64(z - top)))
		sum += l.out[c]
	}
	for c := range l.out {
		l.out[c] /= sum
	}
	return best
}

// step is one step of gradient descent on one example.
func (l *learner) step(x []uint8, label int32, rate float32) {
	l.predict(x)
	l.out[label]--
	clear(l.dac)
	for c, d := range l.out {
		row := l.w2[c*len(l.act) : (c+1)*len(l.act)]
		for j, a := range l.act {
			if a != 0 {
				l.dac[j] += d * row[j]
				row[j] -= rate * d * a
			}
		}
		l.b2[c] -= rate * d
	}
	if l.hidden == 0 {
		return
	}
	for j, a := range l.act {
		l.dac[j] *= rate * a * (1 - a)
		l.b1[j] -= l.dac[j]
	}
	for i, p := range x {
		if p != 0 {
			v := float32(p) / 255
			row := l.w1[i*l.hidden : (i+1)*l.hidden]
			for j, d := range l.dac {
				row[j] -= v * d
			}
		}
	}
}

// accuracy trains for some epochs, with the learning rate decreasing to a tenth, and returns the
// test accuracy.
func (l *learner) accuracy(t *testing.T, set *Set, epochs int, rate float32) float64 {
	t.Helper()
	order, err := NewOrder(sequence(set.Train.Len()), 0, set.Train.Len(), Epochs, 1)
	if err != nil {
		t.Fatal(err)
	}
	var idx []int32
	for e := range epochs {
		now := rate * float32(math.Pow(0.1, float64(e)/float64(epochs)))
		idx = order.At(idx, e)
		for _, i := range idx {
			l.step(set.Train.Pixels[int(i)*pixels:int(i+1)*pixels], set.Train.Labels[i], now)
		}
	}
	right := 0
	for i, y := range set.Test.Labels {
		if l.predict(set.Test.Pixels[i*pixels:(i+1)*pixels]) == int(y) {
			right++
		}
	}
	return float64(right) / float64(set.Test.Len())
}

// The long form of the next test, with 20000 examples and 100 sigmoids as in the paper.
func TestSyntheticNeedsHiddenLayerLong(t *testing.T) {
	if os.Getenv("FSPDA_LONG") == "" {
		t.Skip("set FSPDA_LONG=1 to train on 20000 digits for ten seconds")
	}
	set := mustSynthetic(t, SyntheticOptions{Seed: 1})
	linear := newLearner(0, 1).accuracy(t, set, 12, 0.01)
	mlp := newLearner(100, 1).accuracy(t, set, 12, 0.1)
	t.Logf("linear %.4f, 784-100-10 %.4f", linear, mlp)
	if linear > 0.90 || mlp < 0.95 {
		t.Errorf("linear %.4f, want at most 0.90; 784-100-10 %.4f, want at least 0.95", linear, mlp)
	}
}

// The set is not trivial: a linear model is clearly less accurate than a network with a hidden
// layer.
func TestSyntheticNeedsHiddenLayer(t *testing.T) {
	if raceDetector {
		t.Skip("one goroutine that only computes: nothing for the race detector")
	}
	set := mustSynthetic(t, SyntheticOptions{Train: 4000, Test: 2000, Seed: 3})
	linear := newLearner(0, 1).accuracy(t, set, 6, 0.02)
	mlp := newLearner(48, 1).accuracy(t, set, 10, 0.15)
	t.Logf("linear %.4f, 784-48-10 %.4f", linear, mlp)
	if linear < 0.5 || linear > 0.90 || mlp < linear+0.03 {
		t.Errorf("linear %.4f, want 0.50 to 0.90; 784-48-10 %.4f, want three points more", linear, mlp)
	}
}
