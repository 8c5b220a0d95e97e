package config

import (
	"fspda/dist"
	"fspda/train/setting"
)

// EvaluationKeys choose when and how models are evaluated.
type EvaluationKeys[N ~string] struct {
	EvalPoints   int     `key:"eval_points"`
	EvalEpochs   float64 `key:"eval_epochs"`
	Metrics      N       `key:"metrics"`
	EvalTest     int     `key:"eval_test"`
	EvalRandom   int     `key:"eval_random"`
	SampleTokens int     `key:"sample_tokens"`
	BN           string  `key:"bn"`
	BNBatches    int     `key:"bn_batches"`
	Average      string  `key:"average"`
	Accounting   string  `key:"accounting"`
}

var evaluationKeys = []setting.Key{
	{Name: "eval_points", Topic: "output", Default: 20, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Needs: []setting.Need{needsRun("eval_epochs 0",
			func(s *Setup, c Config) bool { return c.EvalEpochs == 0 || c.EvalPoints == s.Config.EvalPoints })},
		Help: "evaluations after the first one; iteration 0 is always evaluated"},
	{Name: "eval_epochs", Topic: "output", Range: "[0, inf)", Want: "0, or a number of epochs above it",
		Help: "epochs from one evaluation to the next, in place of eval_points; 0: eval_points is the number of " +
			"evaluations"},
	{Name: "metrics", Topic: "output", Default: auto,
		Choices: []string{auto, MetricsFull, "full(n)", MetricsTest}, Forms: true, Check: checkMetrics,
		Resume: setting.Recorded,
		Help: "full (objective and gradient over all training data), full(n) (over a fixed sample of n examples), " +
			"test (test set; training loss of the agents' own batches) or auto (full where that takes at most a " +
			"fifth of the work of training, else over a sample)"},
	{Name: "eval_test", Topic: "output", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Needs: []setting.Need{setting.Is("eval_random", 0), needsRun("at least as many test examples",
			func(s *Setup, c Config) bool { return c.EvalTest <= s.Set.Test.Len() })},
		Resume: setting.Recorded,
		Help:   "test examples of an evaluation, spread evenly over the set; 0 is all; of a text, windows"},
	{Name: "eval_random", Topic: "output", Whole: true, Range: "[0, inf)", Want: "at least 0",
		Needs: []setting.Need{needsText}, Since: "0.2.0", Resume: setting.Recorded,
		Help: "text: batches of random windows of an evaluation, in place of the fixed ones; 0 is none"},
	{Name: "sample_tokens", Topic: "output", Whole: true, Range: "[0, 65536]", Want: "0, for none, to 65536",
		Needs: []setting.Need{needsText}, Since: "0.2.0", Resume: setting.Recorded,
		Help: "text: tokens that the mean model writes at each row, into samples.jsonl and on the page; 0 is none"},
	{Name: "bn", Topic: "output", Default: BNPooled, Choices: []string{BNPooled, BNRecalibrate, BNLocal},
		Needs: []setting.Need{needsBatchNorm}, Resume: setting.Recorded,
		Help: "batch norm of the mean model: pooled (from the agents' statistics; recalibrated for the last row), " +
			"recalibrate (measured anew) or local (each agent's in turn)"},
	{Name: "bn_batches", Topic: "output", Default: 200, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Needs: []setting.Need{needsBatchNorm, needs("bn pooled or recalibrate",
			func(c Config) bool { return c.BN != BNLocal })},
		Resume: setting.Recorded,
		Help: "training batches of a recalibration; at most two passes over the training set, and one batch for " +
			"each gradient of the run"},
	{Name: "average", Topic: "output", Default: averageNone,
		Choices: []string{averageNone, "ema(decay)", "tail(t)"}, Forms: true, Check: checkAverage,
		Since: "0.2.0",
		Help: "weights of the mean model: none (those of training), ema(decay) (the exponential average of each " +
			"agent's, such as ema(0.999)) or tail(t) (their mean over the iterations after t)"},
	{Name: "accounting", Topic: "output", Default: "shared-seed", Names: dist.Accountings, Resume: setting.Recorded,
		Help: "what bits_total counts: shared-seed, packed or reference; all three are always kept"},
}

// OutputKeys choose the checkpoints.
type OutputKeys struct {
	Checkpoint float64 `key:"checkpoint_every"`
	Keep       int     `key:"keep_checkpoints"`
}

var outputKeys = []setting.Key{
	{Name: "checkpoint_every", Topic: "output", Default: 60, Range: "[0, 1e9]", Want: "0, or 0.001 to 1e9 seconds",
		Check: zeroOr(1e-3), Resume: setting.Computed,
		Help: "seconds between checkpoints; 0 keeps only the last one"},
	{Name: "keep_checkpoints", Topic: "output", Default: 2, Whole: true, Range: "[1, inf)", Want: "at least 1",
		Resume: setting.Computed,
		Help:   "number of checkpoints to keep, in addition to the best mean model"},
}
