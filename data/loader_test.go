package data

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"fspda/device"
)

func mustLoader(t testing.TB, s Split, shard []int32, agent int, o LoaderOptions) *Loader {
	t.Helper()
	l, err := NewLoader(s, shard, agent, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// play takes n batches and returns copies.
func play(t *testing.T, l *Loader, n int) []device.Batch {
	t.Helper()
	var all []device.Batch
	for range n {
		b, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, copied(l, b))
		l.Release(b)
	}
	return all
}

// copied returns a copy of a batch as float32 values.
func copied(l *Loader, b device.Batch) device.Batch {
	return device.Batch{X: slices.Clone(b.Numbers(nil, l.split.Features())), Y: slices.Clone(b.Y), Key: b.Key}
}

func sameBatches(t *testing.T, what string, got, want []device.Batch) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i].X, want[i].X) || !slices.Equal(got[i].Y, want[i].Y) ||
			got[i].Key != want[i].Key {
			t.Fatalf("%s: batch %d differs", what, i)
		}
	}
}

// The batch of a step is the same for every Ahead and First, by Next and by Batch.
func TestLoaderIsAPureFunctionOfTheStep(t *testing.T) {
	// whose batches name their examples, and are numbers
	for _, split := range []Split{tiny(t, 120).Train, coloured(t, 120, None).Train} {
		loaderIsPure(t, split, shardOf(40)) // 1, 4, ... 118
	}
}

func loaderIsPure(t *testing.T, split Split, shard []int32) {
	t.Helper()
	for _, sampling := range []Sampling{Epochs, IID, Full} {
		o := LoaderOptions{Batch: 9, Sampling: sampling, Seed: 5}
		want := play(t, mustLoader(t, split, shard, 6, o), 23)
		for _, c := range []struct{ first, ahead int }{{0, 1}, {0, 4}, {7, 0}, {7, 3}, {22, 2}} {
			o.First, o.Ahead = c.first, c.ahead
			l := mustLoader(t, split, shard, 6, o)
			sameBatches(t, string(sampling), play(t, l, 23-c.first), want[c.first:])
			if l.step != 23 {
				t.Errorf("next step is %d, want 23", l.step)
			}
			var direct [1]device.Batch
			if err := l.Batch(&direct[0], 11); err != nil {
				t.Fatal(err)
			}
			direct[0] = copied(l, direct[0])
			sameBatches(t, "direct", direct[:], want[11:12])
		}
	}
}

func TestLoaderAgreesWithItsOrder(t *testing.T) {
	split, shard := tiny(t, 120).Train, shardOf(40)
	l := mustLoader(t, split, shard, 1, LoaderOptions{Batch: 16, Seed: 2, Ahead: 2})
	order := mustOrder(t, shard, 1, 16, Epochs, 2)
	if order.StepsPerEpoch() != 3 {
		t.Errorf("%d steps, want 3", order.StepsPerEpoch())
	}
	for step, b := range play(t, l, 7) {
		for row, e := range order.At(nil, step) {
			checkRow(t, b, row, split, int(e), 0.25, 0.5)
		}
	}
}

// The goroutine prepares exactly Ahead+1 batches and then waits; an unreleased batch is not
// overwritten.
func TestLoaderIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLoader(coloured(t, 120, None).Train, shardOf(40), 0, LoaderOptions{Batch: 8, Seed: 1, Ahead: 2})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(l.ready) != 3 || len(l.free) != 0 {
			t.Errorf("%d batches ready and %d buffers free, want 3 and 0", len(l.ready), len(l.free))
		}
		held, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		before := slices.Clone(held.X)
		for range 5 {
			b, err := l.Next()
			if err != nil {
				t.Fatal(err)
			}
			l.Release(b)
			synctest.Wait()
		}
		if !slices.Equal(held.X, before) {
			t.Error("a batch changed while it was out")
		}
		l.Release(held)
		l.Close()
		l.Close()
		if _, err := l.Next(); !errors.Is(err, ErrClosed) {
			t.Errorf("Next after Close: %v, want ErrClosed", err)
		}
		// synctest.Test fails if the goroutine of the loader still runs.
	})
}

// Close unblocks Next. This loader has no goroutine, so nothing else would unblock it.
func TestCloseEndsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Loader{buffers: 2, ready: make(chan prepared), stop: make(chan struct{})}
		answer := make(chan error, 1)
		go func() {
			_, err := l.Next()
			answer <- err
		}()
		synctest.Wait()
		l.Close()
		if err := <-answer; !errors.Is(err, ErrClosed) {
			t.Errorf("Next returned %v, want ErrClosed", err)
		}
	})
}

func TestLoaderPanicsOnMisuse(t *testing.T) {
	split := tiny(t, 120).Train
	for _, ahead := range []int{0, 1} {
		l := mustLoader(t, split, shardOf(40), 0, LoaderOptions{Batch: 8, Ahead: ahead})
		var b device.Batch
		for range ahead + 1 {
			var err error
			if b, err = l.Next(); err != nil {
				t.Fatal(err)
			}
		}
		mustPanic(t, "Next with all batches out", func() { _, _ = l.Next() })
		l.Release(b)
		mustPanic(t, "a second Release", func() { l.Release(b) })
		mustPanic(t, "Release of an empty batch", func() { l.Release(device.Batch{}) })
		mustPanic(t, "Release of a foreign batch", func() { l.Release(device.Batch{Y: []int32{1}}) })
	}
}

func TestNewLoaderRefuses(t *testing.T) {
	split := tiny(t, 10).Train
	for _, c := range []struct {
		shard []int32
		o     LoaderOptions
		want  string
	}{
		{sequence(10), LoaderOptions{Batch: 11}, "agent 2: batch of 11"},
		{sequence(10), LoaderOptions{Batch: 1, First: -1}, "first step -1"},
		{sequence(10), LoaderOptions{Batch: 1, Ahead: -1}, "-1 batches ahead"},
		{sequence(11), LoaderOptions{Batch: 1}, "entry 10 of its shard is example 10, want 0 to 9"},
		{[]int32{-4}, LoaderOptions{Batch: 1}, "example -4"},
	} {
		if _, err := NewLoader(split, c.shard, 2, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// In steady state neither the caller nor the goroutine allocates.
func TestLoaderAllocatesNothing(t *testing.T) {
	split := tiny(t, 120).Train
	for _, ahead := range []int{0, 2} {
		l := mustLoader(t, split, shardOf(40), 0, LoaderOptions{Batch: 8, Ahead: ahead})
		round := func() {
			b, err := l.Next()
			if err != nil {
				t.Fatal(err)
			}
			l.Release(b)
		}
		for range 20 {
			round()
		}
		if n := testing.AllocsPerRun(200, round); n != 0 {
			t.Errorf("%d ahead: %v allocations per batch, want none", ahead, n)
		}
	}
}

func BenchmarkLoader(b *testing.B) {
	set := mustSynthetic(b, SyntheticOptions{Train: 6000, Test: 1, Seed: 1})
	l := mustLoader(b, set.Train, sequence(6000), 0, LoaderOptions{Batch: 64, Ahead: 2})
	b.ReportAllocs()
	for b.Loop() {
		batch, err := l.Next()
		if err != nil {
			b.Fatal(err)
		}
		l.Release(batch)
	}
}

// Every batch of every agent and seed has a key of its own.
func TestLoaderKeys(t *testing.T) {
	seen := map[uint64]bool{0: true}
	for agent := range 3 {
		for seed := range uint64(2) {
			l := mustLoader(t, tiny(t, 60).Train, shardOf(20), agent, LoaderOptions{Batch: 7, Seed: seed})
			for _, b := range play(t, l, 5) {
				if seen[b.Key] {
					t.Fatalf("agent %d, seed %d: key %x is 0 or of another batch", agent, seed, b.Key)
				}
				seen[b.Key] = true
			}
		}
	}
}
