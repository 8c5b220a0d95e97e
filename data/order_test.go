package data

import (
	"slices"
	"strings"
	"testing"

	"fspda/device"
)

// shardOf is n example numbers with gaps.
func shardOf(n int) []int32 {
	shard := sequence(n)
	for i := range shard {
		shard[i] = 3*shard[i] + 1
	}
	return shard
}

func mustOrder(t testing.TB, shard []int32, agent, batch int, s Sampling, seed uint64) *Order {
	t.Helper()
	o, err := NewOrder(shard, agent, batch, s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// An epoch of 6000 examples at batch 256 is 23 whole batches and one of 112, and holds every
// example once.
func TestEpochsWalkWithoutReplacement(t *testing.T) {
	shard := shardOf(6000)
	o := mustOrder(t, shard, 3, 256, "", 1)
	if o.StepsPerEpoch() != 24 {
		t.Errorf("%d steps, want 24", o.StepsPerEpoch())
	}
	var before []int32
	for epoch := range 3 {
		var walked []int32
		for i := range 24 {
			batch := o.At(nil, epoch*24+i)
			if want := []int{256, 112}[i/23]; len(batch) != want {
				t.Fatalf("batch %d has %d examples, want %d", i, len(batch), want)
			}
			walked = append(walked, batch...)
		}
		if slices.Equal(walked, before) {
			t.Errorf("epoch %d repeats the order of the one before", epoch)
		}
		before = slices.Clone(walked)
		slices.Sort(walked)
		if !slices.Equal(walked, shard) {
			t.Errorf("epoch %d does not hold every example once", epoch)
		}
	}
}

// The examples of a step do not depend on earlier calls, only on seed, agent and step.
func TestOrderIsAPureFunction(t *testing.T) {
	shard := shardOf(50)
	for _, s := range []Sampling{Epochs, IID, Full} {
		forward := mustOrder(t, shard, 2, 8, s, 7)
		var all [][]int32
		for step := range 30 {
			all = append(all, forward.At(nil, step))
		}
		backward := mustOrder(t, shard, 2, 8, s, 7)
		for step := 29; step >= 0; step-- {
			if got := backward.At(nil, step); !slices.Equal(got, all[step]) {
				t.Fatalf("%s: step %d is %v backward and %v forward", s, step, got, all[step])
			}
		}
		if s == Full {
			continue
		}
		if slices.Equal(mustOrder(t, shard, 3, 8, s, 7).At(nil, 0), all[0]) ||
			slices.Equal(mustOrder(t, shard, 2, 8, s, 8).At(nil, 0), all[0]) {
			t.Errorf("%s: another agent or seed sees the same batch", s)
		}
	}
	if !slices.Equal(shard, shardOf(50)) {
		t.Error("the shard was changed")
	}
}

func TestIIDRepeatsExamples(t *testing.T) {
	shard := shardOf(10)
	o := mustOrder(t, shard, 0, 32, IID, 1) // larger than the shard: allowed here
	count := map[int32]int{}
	const steps = 1000
	for step := range steps {
		batch := o.At(nil, step)
		if len(batch) != 32 {
			t.Fatalf("%d examples, want 32", len(batch))
		}
		for _, e := range batch {
			count[e]++
		}
	}
	for _, e := range shard {
		if c := count[e]; c < 2930 || c > 3470 { // 3200, five standard deviations
			t.Errorf("example %d came %d times of 3200 expected", e, c)
		}
	}
	if o.StepsPerEpoch() != 1 {
		t.Errorf("%d steps, want 1", o.StepsPerEpoch())
	}
}

func TestFullIsTheShard(t *testing.T) {
	shard := shardOf(10)
	o := mustOrder(t, shard, 0, 0, Full, 1)
	if got := o.At(nil, 5); !slices.Equal(got, shard) || o.StepsPerEpoch() != 1 {
		t.Errorf("step 5 is %v, %d steps", got, o.StepsPerEpoch())
	}
}

func TestNewOrderRefuses(t *testing.T) {
	for _, c := range []struct {
		shard        []int32
		agent, batch int
		s            Sampling
		want         string
	}{
		{shardOf(10), 4, 11, Epochs, "agent 4: batch of 11 examples, but its shard has only 10: use a batch of at " +
			"most 10"},
		{shardOf(10), 4, 0, Epochs, "batch of 0"},
		{shardOf(10), 4, -1, IID, "batch of -1"},
		{nil, 4, 1, Full, "agent 4 has no examples"},
		{shardOf(10), -1, 1, Epochs, "agent -1"},
		{shardOf(10), 0, 1, "random", `sampling "random", want epochs, iid or full`},
	} {
		if _, err := NewOrder(c.shard, c.agent, c.batch, c.s, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	mustPanic(t, "step -1", func() { mustOrder(t, shardOf(3), 0, 1, Epochs, 1).At(nil, -1) })
}

// With repetition place j of an epoch takes entry j div 3 of the permutation without it: an epoch
// keeps its batches, and sees a third of the shard. A loader takes the repetition of its set.
func TestRepeatedOrder(t *testing.T) {
	const batch, repeat = 6, 3
	plain, err := NewOrder(shardOf(20), 2, 20, Epochs, 9)
	if err != nil {
		t.Fatal(err)
	}
	split := coloured(t, 60, CIFAR).Train
	split.repeat = repeat
	l := mustLoader(t, split, shardOf(20), 2, LoaderOptions{Batch: batch, Seed: 9, Ahead: 2})
	if n := l.foreground.order.StepsPerEpoch(); n != 4 {
		t.Errorf("%d steps, want 4", n)
	}
	batches := play(t, l, 8)
	var first, second []int32
	for epoch := range 2 {
		perm := plain.At(nil, epoch)
		for j := range 20 {
			step := 4*epoch + j/batch
			var want device.Batch
			key := augmentKey{9, 2, step}
			examples := make([]int32, len(batches[step].Y))
			for row := range examples {
				examples[row] = perm[(j/batch*batch+row)/repeat]
			}
			if err := split.gatherAugmented(&want, examples, nil, key, new(imageScratch), nil); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(want.X, batches[step].X) || !slices.Equal(want.Y, batches[step].Y) {
				t.Fatalf("step %d is not the batch of %v", step, examples)
			}
		}
		first, second = second, perm[:7]
	}
	if slices.Equal(first, second) {
		t.Error("two epochs see the same pictures")
	}
	if x := batches[0].X; slices.Equal(x[:90], x[90:180]) && slices.Equal(x[:90], x[180:270]) {
		t.Error("an example appears with the same augmentation")
	}
}
