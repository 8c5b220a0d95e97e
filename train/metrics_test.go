package train

import (
	"math"
	"slices"
	"testing"
)

// With metrics test a row has the test set of full metrics, to the bit, and as training loss that
// of the batches since the row before.
func TestCheapMetrics(t *testing.T) {
	for _, name := range []string{"fspda-sa", "dsgd", "swarm", "fspda-async"} {
		c := small()
		c.Algo, c.EvalPoints = name, 6
		full := play(t, c, Options{})
		c.Metrics = "test"
		cheap := play(t, c, Options{})
		for k, r := range cheap.Rows {
			w := full.Rows[k]
			if r.TestAccAvg != w.TestAccAvg || r.TestLossMean != w.TestLossMean || r.TestAccMin != w.TestAccMin ||
				r.Consensus != w.Consensus || r.BitsTotal != w.BitsTotal || !same(r.DualSum, w.DualSum) {
				t.Errorf("%s, row %d: %+v, full metrics say %+v", name, k, r, w)
			}
			for _, v := range []Num{r.GradSqAvg, r.GradSqWorst, r.DualTrack} {
				if !math.IsNaN(float64(v)) {
					t.Errorf("%s, row %d has a gradient: %v", name, k, v)
				}
			}
			if empty := math.IsNaN(float64(r.TrainLossAvg)); empty != (k == 0) {
				t.Errorf("%s, row %d: training loss %v", name, k, r.TrainLossAvg)
			}
			if r.TrainLossWorst < r.TrainLossAvg {
				t.Errorf("%s, row %d: worst training loss %v below the mean %v", name, k, r.TrainLossWorst,
					r.TrainLossAvg)
			}
		}
		if !slices.EqualFunc(cheap.Models, full.Models, slices.Equal) {
			t.Errorf("%s: cheap metrics changed the trajectory", name)
		}
	}
}

func same(a, b Num) bool { return a == b || a != a && b != b }

// The loss of a row is the mean over exactly the batches since the one before: with every gradient
// exact and no step to speak of it is F.
func TestBatchLoss(t *testing.T) {
	c := small()
	c.Metrics, c.Sampling, c.Alpha, c.Edges, c.Algo = "test", "full", 1e-12, "empty", "dsgd"
	r := play(t, c, Options{})
	c.Metrics = "full"
	f := play(t, c, Options{}).Rows[0].TrainLossAvg
	for _, row := range r.Rows[1:] {
		if math.Abs(float64(row.TrainLossAvg-f)) > 1e-5 {
			t.Errorf("iteration %d: %v, F is %v", row.Iteration, row.TrainLossAvg, f)
		}
	}
}

// eval_test spreads its examples over the whole test set, in every row.
func TestEvalTest(t *testing.T) {
	c := small()
	c.Metrics = "test"
	all := play(t, c, Options{}).Rows
	c.EvalTest = 30
	some := play(t, c, Options{}).Rows
	if some[2].TestLossAvg == all[2].TestLossAvg {
		t.Error("a row before the last looked at all examples")
	}
	if n := 30 * float64(some[2].TestAccAvg); math.Abs(n-math.Round(n)) > 1e-9 {
		t.Errorf("accuracy %v is no fraction of 30", some[2].TestAccAvg)
	}
	if last := len(all) - 1; some[last].TestLossAvg == all[last].TestLossAvg {
		t.Error("the last row looked at all examples")
	}
}
