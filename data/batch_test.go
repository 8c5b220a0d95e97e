package data

import (
	"math"
	"testing"

	"fspda/device"
	"fspda/internal/rng"
)

// checkRow compares row of b with example e of s, by the formula.
func checkRow(t *testing.T, b device.Batch, row int, s Split, e int, mean, std float64) {
	t.Helper()
	f := s.Features()
	if b.Y[row] != s.Labels[e] {
		t.Errorf("row %d has label %d, want that of example %d, %d", row, b.Y[row], e, s.Labels[e])
	}
	numbers := b.Numbers(nil, f)
	for j := range f {
		want := (float64(s.Pixels[e*f+j])/255 - mean) / std
		if got := float64(numbers[row*f+j]); math.Abs(got-want) > 1e-6 {
			t.Fatalf("row %d value %d is %v, want %v", row, j, got, want)
		}
	}
}

func TestBatchIsConsecutive(t *testing.T) {
	s := tiny(t, 9).Test
	var b device.Batch
	s.Batch(&b, 2, 7)
	if err := b.Check(&device.Code{Batch: 5, Features: 6}); b.N() != 5 || err != nil {
		t.Fatalf("%d examples, want 5: %v", b.N(), err)
	}
	for row := range 5 {
		checkRow(t, b, row, s, row+2, 0.25, 0.5)
	}
	memory := &b.Rows[0]
	if s.Batch(&b, 8, 9); b.N() != 1 || memory != &b.Rows[0] {
		t.Errorf("%d examples, want 1 in the same memory", b.N())
	}
	checkRow(t, b, 0, s, 8, 0.25, 0.5)
	if s.Batch(&b, 3, 3); b.N() != 0 || len(b.Rows) != 0 {
		t.Errorf("%d examples of an empty range", b.N())
	}
}

func TestGatherFollowsTheList(t *testing.T) {
	s := tiny(t, 9).Train
	list := []int32{8, 0, 3, 3}
	var b device.Batch
	s.Gather(&b, list)
	for row, e := range list {
		checkRow(t, b, row, s, int(e), 0.25, 0.5)
	}
	if n := testing.AllocsPerRun(20, func() { s.Gather(&b, list) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// mustPanic runs f and fails if it returns.
func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s did not panic", what)
		}
	}()
	f()
}

func TestBatchPanicsOutside(t *testing.T) {
	s := tiny(t, 4).Train
	var b device.Batch
	mustPanic(t, "a range beyond the end", func() { s.Batch(&b, 0, 5) })
	mustPanic(t, "a backward range", func() { s.Batch(&b, 3, 2) })
	mustPanic(t, "a negative start", func() { s.Batch(&b, -1, 2) })
	mustPanic(t, "example 4 of 4", func() { s.Gather(&b, []int32{4}) })
	mustPanic(t, "example -1", func() { s.Gather(&b, []int32{-1}) })
}

func BenchmarkGather(b *testing.B) {
	set := mustSynthetic(b, SyntheticOptions{Train: 6000, Test: 1, Seed: 1})
	order, err := NewOrder(sequence(6000), 0, 64, Epochs, 1)
	if err != nil {
		b.Fatal(err)
	}
	var dst device.Batch
	var idx []int32
	step := 0
	b.ReportAllocs()
	for b.Loop() {
		idx = order.At(idx, step)
		set.Train.Gather(&dst, idx)
		step++
	}
}

// BenchmarkGatherNoise makes batches of 256 random examples out of 60000, as many as MNIST has:
// more than the caches hold.
func BenchmarkGatherNoise(b *testing.B) {
	const examples, features, batch = 60000, 784, 256
	pixels := make([]uint8, examples*features)
	r := rng.New(1, "gather")
	for i := range pixels {
		pixels[i] = uint8(r.IntN(256))
	}
	set, err := New("noise", []int{features}, 10, 0.5, 0.25, Examples{pixels, make([]int32, examples)},
		Examples{nil, nil})
	if err != nil {
		b.Fatal(err)
	}
	picks := make([]int32, 64*batch)
	for i := range picks {
		picks[i] = int32(r.IntN(examples))
	}
	var dst device.Batch
	for i := 0; b.Loop(); i++ {
		at := i % 64 * batch
		set.Train.Gather(&dst, picks[at:at+batch])
	}
}
