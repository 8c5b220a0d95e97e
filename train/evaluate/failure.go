package evaluate

import "fmt"

// Failure says why a run that finished has failed to converge: its training loss, or that of its
// worst agent, ends above where it began, or its agents are so far from consensus that their models
// reach less than half of the accuracy of the mean model, or it of theirs. Else it is empty.
func Failure(rows []Row) string {
	last := rows[len(rows)-1]
	for _, first := range rows[:len(rows)-1] {
		if first.TrainLossAvg != first.TrainLossAvg { // not measured in the first row
			continue
		}
		switch {
		case last.TrainLossAvg > first.TrainLossAvg:
			return fmt.Sprintf("the training loss ends at %.4g, above %.4g where it began", last.TrainLossAvg,
				first.TrainLossAvg)
		case last.TrainLossWorst > first.TrainLossWorst:
			return fmt.Sprintf("far from consensus: the training loss of the worst agent ends at %.4g, above %.4g "+
				"where it began", last.TrainLossWorst, first.TrainLossWorst)
		}
		break
	}
	if a, b := last.TestAccAvg, last.TestAccMean; a < b/2 || b < a/2 {
		return fmt.Sprintf("far from consensus: the mean model reaches %.4g %% of the test set, the agents' models "+
			"%.4g %% on average", 100*a, 100*b)
	}
	return ""
}
