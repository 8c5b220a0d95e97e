package evaluate

import (
	"math"
	"strings"
	"testing"

	"fspda/train/metric"
)

// judged is a row at an iteration: training loss of the mean model and of the worst agent, accuracy
// of the mean model and mean accuracy of the agents. Ten agents have sent all of 100 coordinates
// ten times.
func judged(iteration int, loss, worst, accuracy, mean float64) metric.Row {
	return metric.Row{Position: metric.Position{Iteration: iteration},
		TrainScores: metric.TrainScores{TrainLossAvg: metric.Num(loss), TrainLossWorst: metric.Num(worst),
			Consensus: 1},
		TestScores: metric.TestScores{TestAccAvg: metric.Num(accuracy), TestAccMean: metric.Num(mean)},
		Traffic:    metric.Traffic{BitsSharedSeed: 10 * 10 * 100 * 32}}
}

// A run whose loss ends above its start, or near it after it had fallen, or whose agents end far
// from consensus, has failed to converge. Runs that are short, of one agent, or without exchanges
// are not told so for that alone.
func TestFailure(t *testing.T) {
	unknown := judged(0, math.NaN(), math.NaN(), 0.1, 0.1)
	start := judged(0, 2.3, 2.3, 0.1, 0.1)
	good := judged(300, 0.3, 0.5, 0.9, 0.8)
	one := judged(600, 0.3, 2.5, 0.1, 0.9)
	one.Consensus = 0
	few := judged(600, 0.3, 2.5, 0.9, 0.2)
	few.BitsSharedSeed = 1000
	long := few
	long.Iteration = 5000
	tested := func(iteration int, loss float64) metric.Row {
		r := judged(iteration, math.NaN(), math.NaN(), 0.5, 0.5)
		r.TestLossAvg = metric.Num(loss)
		return r
	}
	for _, c := range []struct {
		name string
		rows []metric.Row
		want string
	}{
		{"one row", []metric.Row{start}, ""},
		{"good", []metric.Row{start, good}, ""},
		{"loss above its start", []metric.Row{start, good, judged(600, 2.4, 2.5, 0.9, 0.8)},
			"training loss ends at 2.4, above 2.3"},
		{"losses of batches",
			[]metric.Row{unknown, judged(300, 0.1, 0.2, 0.9, 0.8), judged(600, 0.12, 0.3, 0.9, 0.8)}, ""},
		{"slowly diverging", []metric.Row{start, good, judged(600, 1.9, 2, 0.5, 0.5)},
			"ends at 1.9, and was 0.3 at iteration 300"},
		{"noise", []metric.Row{start, good, judged(600, 0.5, 0.7, 0.85, 0.8)}, ""},
		{"hardly learning",
			[]metric.Row{start, judged(300, 2.2, 2.25, 0.2, 0.2), judged(600, 2.28, 2.29, 0.2, 0.2)}, ""},
		{"worst agent", []metric.Row{start, judged(600, 0.3, 2.5, 0.9, 0.8)},
			"far from consensus: the training loss of the worst agent ends at 2.5"},
		{"agents behind the mean model", []metric.Row{start, judged(600, 0.3, 0.5, 0.8, 0.2)},
			"far from consensus: the mean model reaches 80 %"},
		{"mean model behind the agents",
			[]metric.Row{start, judged(600, 0.3, 0.5, 0.3, 0.9)}, "the agents' models 90 %"},
		{"chance", []metric.Row{start, judged(600, 2.2, 2.2, 0.12, 0.05)}, ""},
		{"rare classes", []metric.Row{judged(0, 7, 7, 0.001, 0.001), judged(600, 6, 6, 0.003, 0.001)}, ""},
		{"nothing measured", []metric.Row{unknown, unknown}, ""},
		{"short", []metric.Row{start, judged(60, 2.5, 5, 0.5, 0.1)}, ""},
		{"short and exploding", []metric.Row{start, judged(60, 4.7, 5, 0.1, 0.1)}, "ends at 4.7, above 2.3"},
		{"one agent", []metric.Row{start, one}, ""},
		{"few exchanges", []metric.Row{start, few}, ""},
		{"few exchanges of a long run", []metric.Row{start, long}, "far from consensus"},
		{"only tests", []metric.Row{tested(0, 2.3), tested(600, 2.6)}, "test loss ends at 2.6, above 2.3"},
		{"overfitted", []metric.Row{tested(0, 2.3), tested(300, 0.3), tested(600, 1.9)}, ""},
		{"only tests, good", []metric.Row{tested(0, 2.3), tested(600, 0.6)}, ""},
	} {
		if got := Failure(c.rows, 10, 100); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%s: %q, want one with %q", c.name, got, c.want)
		}
	}
}
