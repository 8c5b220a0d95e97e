package config

import (
	"math"
	"testing"
)

// Values at the end of an epoch, for a largest step of 0.1, 5 epochs of warm-up and 100 in all.
func TestCosine(t *testing.T) {
	const per = 200
	s := Schedule{Alpha: 0.1, Eta: 0.004, Cosine: true, Warmup: 5, Epochs: 100, PerEpoch: per}
	for _, c := range []struct{ epoch, want float64 }{{2.5, 0.05}, {5, 0.1}, {52.5, 0.05}, {99, 2.7337e-5}, {100, 0}} {
		alpha, eta := s.At(int(c.epoch*per) - 1)
		if math.Abs(alpha-c.want) > 1e-4*c.want+1e-17 {
			t.Errorf("epoch %v: %v, want %v", c.epoch, alpha, c.want)
		}
		if math.Abs(eta-0.04*alpha) > 1e-18 {
			t.Errorf("epoch %v: eta/alpha is not constant: %v/%v", c.epoch, eta, alpha)
		}
	}
	if alpha, _ := s.At(1e6); alpha != 0 {
		t.Errorf("beyond the end: %v", alpha)
	}
}

func TestConstant(t *testing.T) {
	s := Schedule{Alpha: 0.1, Eta: 0.01}
	for _, at := range []int{0, 1, 1e9} {
		if alpha, eta := s.At(at); alpha != 0.1 || eta != 0.01 {
			t.Errorf("iteration %d: %v, %v", at, alpha, eta)
		}
	}
}

// Uncoupled, eta stays while alpha rises and falls.
func TestUncoupled(t *testing.T) {
	s := Schedule{Alpha: 0.1, Eta: 0.004, Uncoupled: true, Cosine: true, Warmup: 5, Epochs: 100, PerEpoch: 10}
	for _, at := range []int{0, 24, 500, 999} {
		if alpha, eta := s.At(at); eta != 0.004 || alpha == 0.1 {
			t.Errorf("iteration %d: %v, %v", at, alpha, eta)
		}
	}
}
