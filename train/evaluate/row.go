package evaluate

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"fspda/train/snapshot"
)

// Num is a number that may be undefined.
type Num = snapshot.Num

// Row is one evaluation: the state at the head of an iteration, before its update. x_i are the
// models of the agents, xbar their mean, F the objective over all training data with the L2 term,
// λ_i the duals. Losses and accuracies are plain numbers, accuracies in [0,1]. The sections only
// group the columns; their order is the order of the columns.
type Row struct {
	Position
	TrainScores
	TestScores
	DualScores
	Traffic
	DecodeScores
	LossScaling
	Steps
	Times
	// F(xbar) without the L2 term. With metrics test the L2 term is computed from the agents'
	// models at the row; NaN: the network does not tell it.
	TrainDataLoss Num `json:"train_data_loss_avg"`
	Clipped       int `json:"clipped_grads"` // gradients that clip_norm shortened, over all agents so far
	LanguageScores
	// In real time agents may have been dropped. NaN: the row was written before this column existed.
	AgentsPresent Num `json:"agents_present"`
}

// Position is where the run stands.
type Position struct {
	Iteration int `json:"iteration"`
	Epoch     Num `json:"epoch"` // local epochs of the mean agent
}

// TrainScores are objective and gradient over all training data, and the distances between models.
type TrainScores struct {
	TrainLossWorst Num `json:"train_loss_worst"` // max_i F(x_i)
	TrainLossAvg   Num `json:"train_loss_avg"`   // F(xbar)
	GradSqWorst    Num `json:"grad_sq_worst"`    // max_i |∇F(x_i)|²
	GradSqAvg      Num `json:"grad_sq_avg"`      // |∇F(xbar)|²
	Consensus      Num `json:"consensus"`        // Σ_i |x_i - xbar|²
	ConsensusMax   Num `json:"consensus_max"`    // max_i |x_i - xbar|²
}

// TestScores are the results on the test set.
type TestScores struct {
	TestLossAvg  Num `json:"test_loss_avg"`  // cross entropy at xbar
	TestLossMean Num `json:"test_loss_mean"` // mean over the agents
	TestAccMin   Num `json:"test_acc_min"`
	TestAccMean  Num `json:"test_acc_mean"`
	TestAccMax   Num `json:"test_acc_max"`
	TestAccAvg   Num `json:"test_acc_avg"`  // accuracy of the mean model xbar
	TestTop5Avg  Num `json:"test_top5_avg"` // top-5 accuracy of the mean model xbar
}

// DualScores describe the duals.
type DualScores struct {
	DualSum   Num `json:"dual_sum"`   // |Σ_i λ_i|: zero but for rounding
	DualTrack Num `json:"dual_track"` // Σ_i |λ_i - (alpha/((1-mu)·eta))·(∇F - ∇f_i)(xbar)|²
}

// Traffic counts bits over all agents, so far.
type Traffic struct {
	BitsTotal      uint64 `json:"bits_total"` // bits in the requested accounting
	BitsAgentMax   uint64 `json:"bits_agent_max"`
	BitsSharedSeed uint64 `json:"bits_shared_seed"`
	BitsPacked     uint64 `json:"bits_packed"`
	BitsReference  uint64 `json:"bits_reference"`
	OverheadBits   uint64 `json:"overhead_bits"`
	WireBytes      uint64 `json:"wire_bytes"`
}

// DecodeScores describe the decoding of a lattice, so far.
type DecodeScores struct {
	// lattice points beyond 0.9 of the radius from their reference: the next may be wrong
	FarDecodes    uint64 `json:"far_decodes"`
	LargestDecode Num    `json:"largest_decode"` // largest distance of a lattice point from its reference
}

// LossScaling describes the loss scale of fp16.
type LossScaling struct {
	Skipped   uint64 `json:"skipped_grads"` // gradients of fp16 that were not finite and became 0, so far
	LossScale Num    `json:"loss_scale"`    // loss scale of fp16, the smallest of the agents; 0: none
}

// Steps counts gradients and holds the step sizes.
type Steps struct {
	GradsTotal int `json:"grads_total"`
	LR         Num `json:"lr"`
	Eta        Num `json:"eta"`
}

// Times are the times of the row.
type Times struct {
	// the time at which the last agent was here: in seconds of the simulated network, without one
	// in mean gradients for fspda-async, and else 0
	Time     Num `json:"virtual_time"`
	TimeMean Num `json:"virtual_time_mean"` // mean over the agents
	WallS    Num `json:"wall_s"`            // the only column that differs between two runs of one configuration
}

// LanguageScores restate test_loss_avg for text; NaN: the data is not text.
type LanguageScores struct {
	Perplexity  Num `json:"perplexity"`    // e^loss
	BitsPerByte Num `json:"bits_per_byte"` // bits for each byte of the text; NaN: the tokenizer is not known
}

// UnmarshalJSON reads a row, also one that was written before its last columns existed.
func (r *Row) UnmarshalJSON(b []byte) error {
	type plain Row
	r.TrainDataLoss, r.Perplexity, r.BitsPerByte = Num(math.NaN()), Num(math.NaN()), Num(math.NaN())
	r.AgentsPresent = Num(math.NaN())
	return json.Unmarshal(b, (*plain)(r))
}

// Columns lists the columns of metrics.csv, which are the keys of metrics.jsonl.
func Columns() []string {
	var names []string
	for _, f := range columns() {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

// columns lists the fields of a Row in order.
func columns() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Row]()),
		func(f reflect.StructField) bool { return f.Anonymous })
}

// Values returns the row as numbers in the order of Columns.
func (r Row) Values() (out []float64) {
	v := reflect.ValueOf(r)
	for _, c := range columns() {
		switch f := v.FieldByIndex(c.Index); f.Kind() {
		case reflect.Float64:
			out = append(out, f.Float())
		case reflect.Int:
			out = append(out, float64(f.Int()))
		default:
			out = append(out, float64(f.Uint()))
		}
	}
	return out
}

// CSV returns the row as a line of metrics.csv. Integers stay integers.
func (r Row) CSV() string {
	v := reflect.ValueOf(r)
	var cells []string
	for _, c := range columns() {
		cell := ""
		switch f := v.FieldByIndex(c.Index); f.Kind() {
		case reflect.Float64:
			if x := f.Float(); !math.IsNaN(x) && !math.IsInf(x, 0) {
				cell = strconv.FormatFloat(x, 'g', -1, 64)
			}
		case reflect.Int:
			cell = strconv.FormatInt(f.Int(), 10)
		default:
			cell = strconv.FormatUint(f.Uint(), 10)
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, ",")
}

// TimeTo returns the virtual time of the first row that reaches a share of the best accuracy of the
// mean model.
func TimeTo(rows []Row, share float64) Num {
	best := Num(0)
	for _, r := range rows {
		if r.TestAccAvg > best { // false for NaN
			best = r.TestAccAvg
		}
	}
	for _, r := range rows {
		if r.TestAccAvg >= Num(share)*best*(1-1e-12) { // 0.72 is 80 % of 0.9, though not in binary
			return r.Time
		}
	}
	return Num(math.NaN())
}

// BestAccuracy returns the largest test accuracy of the mean model after the start; -Inf if there
// is no row.
func BestAccuracy(rows []Row) Num {
	best := Num(math.Inf(-1))
	for _, r := range rows {
		if r.Iteration > 0 && r.TestAccAvg > best {
			best = r.TestAccAvg
		}
	}
	return best
}
