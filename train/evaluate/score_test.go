package evaluate

import (
	"math"
	"slices"
	"testing"

	"fspda/data"
	"fspda/device"
	"fspda/train/config"
)

// eval_test spreads its examples over the whole test set.
func TestExamplesOfTest(t *testing.T) {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := &config.Setup{Division: data.Division{Set: set}}
	s.Config.EvalTest = 30
	tests, err := testsAt(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := tests.(someOfSet).examples
	if len(got) != 30 || got[0] != 0 || got[29] < 90 || !slices.IsSorted(got) ||
		len(slices.Compact(slices.Clone(got))) != 30 {
		t.Errorf("examples %v of %d", got, set.Test.Len())
	}
}

// eval_random draws windows of text that depend on the iteration, in chunks of any size.
func TestRandomWindows(t *testing.T) {
	set, err := data.Open("synthetic-text", data.OpenOptions{TrainSize: 500, TestSize: 300, Window: 8})
	if err != nil {
		t.Fatal(err)
	}
	s := &config.Setup{Division: data.Division{Set: set}}
	s.Config.EvalRandom, s.Config.Batch = 5, 4
	starts := func(iteration, chunk int) (all []int64) {
		tests, err := testsAt(s, iteration)
		if err != nil {
			t.Fatal(err)
		}
		var b device.Batch
		for from := 0; from < tests.len(); from += chunk {
			if err := tests.read(&b, from, min(from+chunk, tests.len())); err != nil {
				t.Fatal(err)
			}
			all = append(all, b.At...)
		}
		return all
	}
	got := starts(7, 3)
	if len(got) != 20 || !slices.Equal(got, starts(7, 20)) || slices.Equal(got, starts(8, 3)) ||
		slices.Min(got) < 0 || slices.Max(got) > 300-9 {
		t.Errorf("windows at %v", got)
	}
}

// Perplexity and bits per byte restate the loss of a text alone.
func TestLanguageScores(t *testing.T) {
	set, err := data.Open("synthetic-text", data.OpenOptions{TrainSize: 500, TestSize: 300, Window: 8})
	if err != nil {
		t.Fatal(err)
	}
	if s := languageScores(set, math.Ln2); s.Perplexity != 2 || s.BitsPerByte != 1 {
		t.Errorf("%+v, want 2 and 1", s)
	}
	pictures, err := data.Synthetic(data.SyntheticOptions{Train: 20, Test: 10})
	if err != nil {
		t.Fatal(err)
	}
	if s := languageScores(pictures, 1); !math.IsNaN(float64(s.Perplexity)) || !math.IsNaN(float64(s.BitsPerByte)) {
		t.Errorf("%+v for pictures", s)
	}
}
