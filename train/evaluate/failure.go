package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fspda/train/metric"
)

// Limits from which on a run is judged.
const (
	// judgedFrom is the number of iterations from which on a run is judged. A shorter one has
	// failed only if its loss is more than twice its loss at the start: warm-up and momentum may
	// raise it at first.
	judgedFrom = 200
	// longRun is the number of iterations from which on also few exchanges are no excuse for agents far
	// from consensus.
	longRun = 2000
	// learnt is the factor above its start that an accuracy must reach before a difference says
	// something about consensus, and apart the least difference.
	learnt, apart = 1.5, 0.02
)

// Failure says why a run of n agents with d parameters that finished has failed to converge:
//
//   - its training loss ends above where it began, or has risen again by more than half of its
//     fall;
//   - or its agents are far from consensus: the training loss of the worst agent ends above where it
//     began, or their models reach less than half of the accuracy of the mean model, or it of theirs.
//
// Else it is empty. Where only the training loss of the latest batches is known, not of all data,
// the test loss is judged, which may rise again for another reason. Short runs are not judged,
// unless the loss has doubled; nor is the consensus of agents that had no time for it: random pairs
// need about log2(n) exchanges of all d coordinates by each agent.
func Failure(rows []metric.Row, n, d int) string {
	if len(rows) < 2 {
		return ""
	}
	first, last := rows[0], rows[len(rows)-1]
	what, loss, whole := "training loss", func(r metric.Row) float64 { return float64(r.TrainLossAvg) }, true
	if math.IsNaN(loss(first)) { // a mean over batches, of which there are none before the first iteration
		what, loss, whole = "test loss", func(r metric.Row) float64 { return float64(r.TestLossAvg) }, false
	}
	least := slices.MinFunc(rows, func(a, b metric.Row) int { return cmp.Compare(loss(a), loss(b)) })
	switch from, end, low := loss(first), loss(last), loss(least); {
	case last.Iteration < judgedFrom && !(end > 2*from):
		return ""
	case end > from:
		return fmt.Sprintf("the %s ends at %.4g, above %.4g where it began", what, end, from)
	case whole && end-low > (from-low)/2 && low < 0.9*from:
		return fmt.Sprintf("the %s ends at %.4g, and was %.4g at iteration %d", what, end, low, least.Iteration)
	}
	exchanges := float64(last.BitsSharedSeed) / 32 / float64(max(1, d)) / float64(max(1, n))
	if last.Consensus == 0 || last.Iteration < longRun && exchanges < 2*math.Log2(float64(n)) {
		return ""
	}
	if whole && last.TrainLossWorst > first.TrainLossWorst {
		return fmt.Sprintf("far from consensus: the training loss of the worst agent ends at %.4g, above %.4g "+
			"where it began", last.TrainLossWorst, first.TrainLossWorst)
	}
	return differing(first, last)
}

// differing says how far apart the accuracies of the mean model and of the agents' models end, if
// that is far; start is the first row.
func differing(start, last metric.Row) string {
	a, b := float64(last.TestAccAvg), float64(last.TestAccMean)
	if more, less := math.Max(a, b), math.Min(a, b); less < more/2 && more-less > apart &&
		more > learnt*float64(start.TestAccAvg) {
		return fmt.Sprintf("far from consensus: the mean model reaches %.4g %% of the test set, the agents' models "+
			"%.4g %% on average", 100*a, 100*b)
	}
	return ""
}
