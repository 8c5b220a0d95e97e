// Package evaluate computes the metrics of a run.
//
// An [Evaluator] turns the snapshots of all agents at one iteration into an [Evaluation]: a
// [metric.Row] and the mean model that it describes. It evaluates each agent's model and their mean
// on the test set, with full metrics also objective and gradient over all training data. It only
// reads: no metric changes a trajectory, and no bit of a metric depends on the number of workers.
//
// The mean model is never trained. batchnorm.go says where it gets the statistics of its batch
// norm.
//
// The columns of a [metric.Row] are public: metrics.jsonl, metrics.csv and their readers rely on
// their names and their order.
//
// Start reading at train/metric, then evaluator.go.
package evaluate
