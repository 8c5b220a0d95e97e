package evaluate

import (
	"math"
	"strings"
	"testing"
)

// A run whose loss ends above its start, or whose agents end far from consensus, has failed to
// converge.
func TestFailure(t *testing.T) {
	row := func(loss, worst, accuracy, mean float64) Row {
		return Row{TrainScores: TrainScores{TrainLossAvg: Num(loss), TrainLossWorst: Num(worst)},
			TestScores: TestScores{TestAccAvg: Num(accuracy), TestAccMean: Num(mean)}}
	}
	unknown := row(math.NaN(), math.NaN(), 0.1, 0.1)
	start := row(2.3, 2.3, 0.1, 0.1)
	for _, c := range []struct {
		rows []Row
		want string
	}{
		{[]Row{start}, ""},
		{[]Row{start, row(0.3, 0.5, 0.9, 0.8)}, ""},
		{[]Row{start, row(0.3, 0.5, 0.9, 0.8), row(2.4, 2.5, 0.9, 0.8)}, "ends at 2.4, above 2.3"},
		{[]Row{unknown, start, row(2.4, 2.5, 0.9, 0.8)}, "ends at 2.4, above 2.3"},
		{[]Row{start, row(0.3, 2.5, 0.9, 0.8)}, "far from consensus: the training loss of the worst agent ends at 2.5"},
		{[]Row{start, row(0.3, 0.5, 0.2, 0.8)}, "far from consensus: the mean model reaches 20 %"},
		{[]Row{start, row(0.3, 0.5, 0.9, 0.3)}, "the agents' models 30 %"},
		{[]Row{unknown, unknown}, ""},
	} {
		if got := Failure(c.rows); got != c.want && (c.want == "" || !strings.Contains(got, c.want)) {
			t.Errorf("%q, want one with %q", got, c.want)
		}
	}
}
