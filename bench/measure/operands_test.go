package measure

import (
	"testing"

	"fspda/cpu"
)

// A pool returns distinct memory until it is reset, and then the same memory again.
func TestPool(t *testing.T) {
	made := 0
	p := &pool{floats: func(n int) []float32 { made++; return make([]float32, n) }}
	for range 3 {
		p.reset()
		a, b := p.take(1000), p.take(10)
		if &a[0] == &b[0] || len(a) != 1000 || len(b) != 10 || cap(b) != 10 {
			t.Fatal("two operands share memory or have wrong lengths")
		}
		for i, v := range a {
			if v == 0 || v < -1 || v >= 1 || i > 2 && v == a[i-1] {
				t.Fatalf("number %d is %v after %v", i, v, a[max(0, i-1)])
			}
		}
	}
	if made != 2 {
		t.Errorf("memory was allocated %d times", made)
	}
}

func TestOperandsOfTheirKind(t *testing.T) {
	p := &pool{floats: func(n int) []float32 { return make([]float32, n) }}
	for _, v := range positive(p.take(1000)) {
		if v < 0.5 || v > 1.5 {
			t.Fatalf("variance %v", v)
		}
	}
	seen := map[float32]bool{}
	for _, v := range labels(p.take(1000), 7) {
		seen[v] = true
		if v != float32(int(v)) || v < 0 || v >= 7 {
			t.Fatalf("label %v", v)
		}
	}
	if len(seen) != 7 {
		t.Errorf("labels %v", seen)
	}
}

func TestVectors(t *testing.T) {
	p := newVectors(cpu.New())
	a, b, c := p.take(5), p.take(5), p.take(6)
	p.reset()
	if p.take(5) != a || p.take(6) != c || p.take(5) != b || a == b || c.Len() != 6 {
		t.Error("take does not return the vectors in order after a reset")
	}
}
