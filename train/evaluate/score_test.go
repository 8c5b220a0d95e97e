package evaluate

import (
	"slices"
	"testing"

	"fspda/data"
	"fspda/train/config"
)

// eval_test spreads its examples over the whole test set.
func TestExamplesOfTest(t *testing.T) {
	set, err := data.Synthetic(data.SyntheticOptions{Train: 400, Test: 100, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := &config.Setup{Config: config.Default(), Set: set}
	s.Config.EvalTest = 30
	got := testExamples(s)
	if len(got) != 30 || got[0] != 0 || got[29] < 90 || !slices.IsSorted(got) ||
		len(slices.Compact(slices.Clone(got))) != 30 {
		t.Errorf("examples %v of %d", got, set.Test.Len())
	}
}
