package metric

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Row is one evaluation: the state at the head of an iteration, before its update. x_i are the
// models of the agents, xbar their mean, F the objective over all training data with the L2 term,
// λ_i the duals. Losses and accuracies are plain numbers, accuracies in [0,1]. The sections only
// group the columns; their order is the order of the columns.
//
// A column is a field. Its tags describe it: json is its name in files, tag its curve in
// TensorBoard, per the unit of that curve, and needs the condition under which a run fills it. late
// marks columns that rows of earlier versions do not have, which are then NaN.
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
	// TrainDataLoss is F(xbar) without the L2 term. With metrics test the L2 term is computed from
	// the agents' models at the row; NaN: the network does not tell it.
	TrainDataLoss Num `json:"train_data_loss_avg" tag:"train/data_loss" late:"true"`
	// Clipped counts gradients that clip_norm shortened, over all agents so far.
	Clipped int `json:"clipped_grads" tag:"steps/clipped_gradients" needs:"clip_norm"`
	LanguageScores
	// AgentsPresent is less than the number of agents where some have left, or were dropped in real
	// time.
	AgentsPresent Num `json:"agents_present" tag:"progress/agents_present" late:"true"`
}

// Position is the progress of the run.
type Position struct {
	Iteration int `json:"iteration"`
	// Epoch is the number of local epochs of the mean agent.
	Epoch Num `json:"epoch" tag:"progress/epoch"`
}

// TrainScores are objective and gradient over all training data, and the distances between models.
type TrainScores struct {
	// TrainLossWorst is max_i F(x_i).
	TrainLossWorst Num `json:"train_loss_worst" tag:"train/loss_worst"`
	// TrainLossAvg is F(xbar).
	TrainLossAvg Num `json:"train_loss_avg" tag:"train/loss"`
	// GradSqWorst is max_i |∇F(x_i)|².
	GradSqWorst Num `json:"grad_sq_worst" tag:"train/grad_sq_worst" needs:"metrics full"`
	// GradSqAvg is |∇F(xbar)|².
	GradSqAvg Num `json:"grad_sq_avg" tag:"train/grad_sq" needs:"metrics full"`
	// Consensus is Σ_i |x_i - xbar|².
	Consensus Num `json:"consensus" tag:"consensus/sum"`
	// ConsensusMax is max_i |x_i - xbar|².
	ConsensusMax Num `json:"consensus_max" tag:"consensus/max"`
}

// TestScores are the results on the test set.
type TestScores struct {
	// TestLossAvg is the cross entropy at xbar.
	TestLossAvg Num `json:"test_loss_avg" tag:"test/loss"`
	// TestLossMean is the mean cross entropy over the agents.
	TestLossMean Num `json:"test_loss_mean" tag:"test/loss_agents"`
	// The accuracies are the least, the mean and the largest of the agents, and the accuracy at
	// xbar.
	TestAccMin  Num `json:"test_acc_min" tag:"test/accuracy_min"`
	TestAccMean Num `json:"test_acc_mean" tag:"test/accuracy_agents"`
	TestAccMax  Num `json:"test_acc_max" tag:"test/accuracy_max"`
	TestAccAvg  Num `json:"test_acc_avg" tag:"test/accuracy"`
	// TestTop5Avg is the top-5 accuracy at xbar.
	TestTop5Avg Num `json:"test_top5_avg" tag:"test/top5"`
}

// DualScores describe the duals.
type DualScores struct {
	// DualSum is |Σ_i λ_i|: zero but for rounding.
	DualSum Num `json:"dual_sum" tag:"dual/sum" needs:"an algorithm with duals"`
	// DualTrack is Σ_i |λ_i - (alpha/((1-mu)·eta))·(∇F - ∇f_i)(xbar)|².
	DualTrack Num `json:"dual_track" tag:"dual/track" needs:"an algorithm with duals and metrics full"`
}

// Traffic counts bits over all agents, so far.
type Traffic struct {
	// BitsTotal counts bits in the requested accounting.
	BitsTotal      uint64 `json:"bits_total" tag:"bits/total_Gbit" per:"1e9"`
	BitsAgentMax   uint64 `json:"bits_agent_max" tag:"bits/agent_max_Gbit" per:"1e9"`
	BitsSharedSeed uint64 `json:"bits_shared_seed" tag:"bits/shared_seed_Gbit" per:"1e9"`
	BitsPacked     uint64 `json:"bits_packed" tag:"bits/packed_Gbit" per:"1e9"`
	BitsReference  uint64 `json:"bits_reference" tag:"bits/reference_Gbit" per:"1e9"`
	OverheadBits   uint64 `json:"overhead_bits" tag:"bits/overhead_Gbit" per:"1e9"`
	WireBytes      uint64 `json:"wire_bytes" tag:"bits/wire_GB" per:"1e9"`
}

// DecodeScores describe the decoding of a lattice, so far.
type DecodeScores struct {
	// FarDecodes counts lattice points beyond 0.9 of the radius from their reference: the next may be
	// wrong.
	FarDecodes uint64 `json:"far_decodes" tag:"lattice/far_decodes" needs:"compress lattice(s,q)"`
	// LargestDecode is the largest distance of a lattice point from its reference.
	LargestDecode Num `json:"largest_decode" tag:"lattice/largest_decode" needs:"compress lattice(s,q)"`
}

// LossScaling describes the loss scale of fp16.
type LossScaling struct {
	// Skipped counts gradients of fp16 that were not finite and became 0, so far.
	Skipped uint64 `json:"skipped_grads" tag:"precision/skipped_gradients" needs:"precision fp16"`
	// LossScale is the smallest loss scale of the agents; 0: there is none.
	LossScale Num `json:"loss_scale" tag:"precision/loss_scale" needs:"precision fp16"`
}

// Steps counts gradients and holds the step sizes.
type Steps struct {
	GradsTotal int `json:"grads_total" tag:"progress/gradients_thousands" per:"1e3"`
	LR         Num `json:"lr" tag:"steps/alpha"`
	Eta        Num `json:"eta" tag:"steps/eta"`
}

// Times are the times of the row.
type Times struct {
	// Time is the time at which the last agent was here: in seconds of the simulated network,
	// without one in mean gradients for fspda-async, and else 0.
	Time Num `json:"virtual_time" tag:"time/virtual" needs:"virtual time, which links give"`
	// TimeMean is the mean time over the agents.
	TimeMean Num `json:"virtual_time_mean" tag:"time/virtual_mean" needs:"virtual time, which links give"`
	// WallS is the only column that differs between two runs of one configuration.
	WallS Num `json:"wall_s" tag:"time/wall_s"`
}

// LanguageScores restate test_loss_avg for text; NaN: the data is not text.
type LanguageScores struct {
	// Perplexity is e^loss.
	Perplexity Num `json:"perplexity" tag:"test/perplexity" late:"true" needs:"data that is text"`
	// BitsPerByte is the number of bits for each byte of the text; NaN: the tokenizer is not known.
	BitsPerByte Num `json:"bits_per_byte" tag:"test/bits_per_byte" late:"true" needs:"data that is text, with a known tokenizer"`
}

// UnmarshalJSON reads a row, also one that was written before its last columns existed.
func (r *Row) UnmarshalJSON(b []byte) error {
	type plain Row
	v := reflect.ValueOf(r).Elem()
	for _, c := range columns() {
		if c.Tag.Get("late") != "" {
			v.FieldByIndex(c.Index).SetFloat(math.NaN())
		}
	}
	return json.Unmarshal(b, (*plain)(r))
}

// Column describes a column of metrics.csv.
type Column struct {
	Name  string
	Tag   string  // Tag is the curve in TensorBoard, whose first part is its group; "": none.
	Unit  float64 // Unit is the unit of that curve.
	Needs string  // Needs is the condition under which a run fills the column; "": every run does.
}

// Described lists the columns in order.
func Described() (all []Column) {
	for _, f := range columns() {
		c := Column{Name: f.Tag.Get("json"), Tag: f.Tag.Get("tag"), Needs: f.Tag.Get("needs"), Unit: 1}
		if per := f.Tag.Get("per"); per != "" {
			unit, err := strconv.ParseFloat(per, 64)
			if err != nil {
				panic("evaluate: the unit of column " + c.Name + " is no number: " + per)
			}
			c.Unit = unit
		}
		all = append(all, c)
	}
	return all
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
var columns = sync.OnceValue(func() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Row]()),
		func(f reflect.StructField) bool { return f.Anonymous })
})

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

// Num is a number that may be undefined: NaN and infinities are written as JSON null and as an
// empty CSV cell.
type Num float64

// MarshalJSON writes the shortest decimal that reads back as the same number.
func (n Num) MarshalJSON() ([]byte, error) {
	if f := float64(n); math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads the output of MarshalJSON.
func (n *Num) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Num(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}
