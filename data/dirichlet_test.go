package data

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fspda/internal/rng"
)

// The mean share of an agent's largest class, ten classes of 600 over ten agents, compared with
// values from single runs of the usual implementation of this split, hence the wide tolerance.
func TestDirichletSkew(t *testing.T) {
	labels := labelled(equal(10, 600))
	for _, c := range []struct{ alpha, want, tolerance float64 }{{100, 0.12, 0.01}, {1, 0.29, 0.02}, {0.3, 0.40, 0.04},
		{0.1, 0.62, 0.04}} {
		sum := 0.0
		const seeds = 100
		for seed := range uint64(seeds) {
			shards := mustSplit(t, Dirichlet{Alpha: c.alpha}, labels, 10, 10, seed)
			if left := unused(t, shards, len(labels)); left != 0 {
				t.Fatalf("alpha %v: %d examples unused", c.alpha, left)
			}
			if least := slices.Min(sizes(shards)); least < 10 {
				t.Fatalf("alpha %v: a shard of %d, want at least 10", c.alpha, least)
			}
			sum += Skew(Histogram(labels, 10, shards))
		}
		got := sum / seeds
		t.Logf("alpha %v: %.3f", c.alpha, got)
		if math.Abs(got-c.want) > c.tolerance {
			t.Errorf("alpha %v: mean largest share %.3f, want %.2f within %.2f", c.alpha, got, c.want, c.tolerance)
		}
	}
}

func TestDirichletKeepsMinSize(t *testing.T) {
	labels := labelled(equal(10, 100))
	for seed := range uint64(50) {
		if least := slices.Min(sizes(mustSplit(t, Dirichlet{Alpha: 1, MinSize: 60}, labels, 10, 10,
			seed))); least < 60 {
			t.Errorf("seed %d: a shard of %d, want at least 60", seed, least)
		}
	}
}

func TestDirichletRefuses(t *testing.T) {
	labels := labelled(equal(10, 100))
	for _, c := range []struct {
		p      Partition
		agents int
		want   string
	}{
		{Dirichlet{Alpha: 0.001, MinSize: 40}, 20,
			"in 10000 draws for 20 agents the smallest shard never had more than"},
		{Dirichlet{Alpha: 1, MinSize: 101}, 10, "10 agents with at least 101 examples each, but there are 1000"},
		{Dirichlet{Alpha: 1, MinSize: -1}, 10, "at least -1"},
		{Dirichlet{}, 10, "concentration 0"},
		{DirichletEqual{Alpha: math.NaN()}, 10, "concentration NaN"},
	} {
		if _, err := c.p.Split(labels, 10, c.agents, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.p, err, c.want)
		}
	}
}

func TestDirichletEqualSizesAndSkew(t *testing.T) {
	labels := labelled(mnistCounts)
	last := 1.1
	for _, alpha := range []float64{0.001, 0.1, 1, 1000} {
		shards := mustSplit(t, DirichletEqual{Alpha: alpha}, labels, 10, 10, 4)
		if !slices.Equal(sizes(shards), equal(10, 6000)) {
			t.Errorf("alpha %v: sizes %v, want ten times 6000", alpha, sizes(shards))
		}
		skew := Skew(Histogram(labels, 10, shards))
		if unused(t, shards, len(labels)) != 0 || skew >= last {
			t.Errorf("alpha %v: skew %v, want all examples used and less skew than %v", alpha, skew, last)
		}
		last = skew
	}
	if last > 0.13 {
		t.Errorf("alpha 1000: skew %v, want that of equal mixes", last)
	}
}

// While no class is exhausted, an agent's shard follows its mix: two agents with many examples,
// compared with the mixes sampled separately.
func TestDirichletEqualFollowsItsMix(t *testing.T) {
	s := rng.New(1, "test")
	mix := []float64{0.5, 0, 0.2, 0.3}
	left := [][]int32{make([]int32, 9), make([]int32, 9), make([]int32, 9), nil}
	var count [4]int
	const draws = 70000
	for range draws {
		count[drawClass(&s, mix, left)]++
	}
	// Class 3 is exhausted: 0.5 and 0.2 become 5/7 and 2/7.
	if count[1] != 0 || count[3] != 0 || math.Abs(float64(count[0])-50000) > 600 {
		t.Errorf("counts %v, want about 50000, 0, 20000, 0", count)
	}
	// A mix of exhausted classes is replaced by the remaining counts.
	count = [4]int{}
	for range 3000 {
		count[drawClass(&s, []float64{0, 0, 0, 1}, left)]++
	}
	if count[3] != 0 || min(count[0], count[1], count[2]) < 850 {
		t.Errorf("counts %v, want about 1000 of each class but the last", count)
	}
}
