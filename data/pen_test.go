package data

import (
	"math"
	"testing"

	"fspda/internal/rng"
)

// The coverage of a line depends on the distance: full within r-soft, half at r, zero from r+soft
// on.
func TestSegmentCoversByDistance(t *testing.T) {
	var p pen
	a, b, r, soft := point{8.3, 9.1}, point{17.2, 14.6}, 2.5, 0.7
	p.segment(a, b, r, soft)
	for i, got := range p.cover {
		x, y := float64(i%side)+0.5, float64(i/side)+0.5
		near := math.Inf(1) // the reference: many points of the segment
		for k := range 2001 {
			f := float64(k) / 2000
			near = min(near, math.Hypot(x-a.x-f*(b.x-a.x), y-a.y-f*(b.y-a.y)))
		}
		want := min(max((r+soft-near)/(2*soft), 0), 1)
		if math.Abs(got-want) > 1e-4 {
			t.Fatalf("pixel %v,%v at distance %v: cover %v, want %v", x, y, near, got, want)
		}
	}
}

func TestSegmentStaysOnTheSheet(t *testing.T) {
	var p pen
	for _, q := range []point{{-50, 3}, {3, -50}, {80, 80}, {-2, -2}, {28, 28}} {
		p.segment(q, point{14, 14}, 3, 0.5)
		p.segment(q, q, 3, 0.5)
		p.erase(q.x, q.y, 2)
	}
	if p.cover[14*side+14] == 0 {
		t.Error("no ink in the middle")
	}
}

func TestCatmullRomPassesItsPoints(t *testing.T) {
	if got := catmullRom(1, 2, 5, 3, 0); got != 2 {
		t.Errorf("begins at %v, want 2", got)
	}
	if got := catmullRom(1, 2, 5, 3, 1); got != 5 {
		t.Errorf("ends at %v, want 5", got)
	}
	if got := catmullRom(0, 1, 2, 3, 0.25); got != 1.25 {
		t.Errorf("a straight line bends: %v, want 1.25", got)
	}
}

func TestSwingIsNearlyASine(t *testing.T) {
	for i := -300; i < 300; i++ {
		x := float64(i) / 100
		if math.Abs(swing(x)-math.Sin(2*math.Pi*x)) > 0.06 {
			t.Errorf("swing(%v) = %v", x, swing(x))
		}
	}
}

func TestErase(t *testing.T) {
	var p pen
	for i := range p.cover {
		p.cover[i] = 1
	}
	p.erase(10, 12, 2)
	faded := 0
	for _, c := range p.cover {
		if c < 1 {
			faded++
		}
	}
	if p.cover[12*side+10] > 0.2 || faded < 9 || faded > 25 {
		t.Errorf("%d pixels faded, the middle is %v", faded, p.cover[12*side+10])
	}
}

// Drawing with a used pen gives the same bytes, whatever was drawn before, and allocates nothing.
func TestDrawForgets(t *testing.T) {
	var used, fresh pen
	a, b := make([]uint8, pixels), make([]uint8, pixels)
	for i := range 60 {
		s := rng.New(2, "synthetic", 0, uint64(i))
		used.draw(a, i%digits, s)
		fresh = pen{}
		fresh.draw(b, i%digits, s)
		if string(a) != string(b) {
			t.Fatalf("drawing %d depends on the ones before", i)
		}
	}
	if n := testing.AllocsPerRun(50, func() { used.draw(a, 8, rng.New(1, "synthetic", 0, 1)) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
