package train

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
)

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

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Num) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = Num(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// Row is one evaluation: the state at the head of an iteration, before its update. x_i are the
// models of the agents, xbar their mean, F the objective over all training data with the L2 term,
// λ_i the duals. Losses and accuracies are plain numbers, accuracies in [0,1].
type Row struct {
	Iteration int `json:"iteration"`
	Epoch     Num `json:"epoch"` // local epochs of the mean agent

	TrainLossWorst Num `json:"train_loss_worst"` // max_i F(x_i)
	TrainLossAvg   Num `json:"train_loss_avg"`   // F(xbar)
	GradSqWorst    Num `json:"grad_sq_worst"`    // max_i |∇F(x_i)|²
	GradSqAvg      Num `json:"grad_sq_avg"`      // |∇F(xbar)|²
	Consensus      Num `json:"consensus"`        // Σ_i |x_i - xbar|²
	ConsensusMax   Num `json:"consensus_max"`    // max_i |x_i - xbar|²

	TestLossAvg  Num `json:"test_loss_avg"`  // cross entropy at xbar
	TestLossMean Num `json:"test_loss_mean"` // mean over the agents
	TestAccMin   Num `json:"test_acc_min"`
	TestAccMean  Num `json:"test_acc_mean"`
	TestAccMax   Num `json:"test_acc_max"`
	TestAccAvg   Num `json:"test_acc_avg"`  // at xbar
	TestTop5Avg  Num `json:"test_top5_avg"` // at xbar

	DualSum   Num `json:"dual_sum"`   // |Σ_i λ_i|: zero but for rounding
	DualTrack Num `json:"dual_track"` // Σ_i |λ_i - (alpha/((1-mu)·eta))·(∇F - ∇f_i)(xbar)|²

	BitsTotal      uint64 `json:"bits_total"` // over all agents, in the accounting asked for
	BitsAgentMax   uint64 `json:"bits_agent_max"`
	BitsSharedSeed uint64 `json:"bits_shared_seed"`
	BitsPacked     uint64 `json:"bits_packed"`
	BitsReference  uint64 `json:"bits_reference"`
	OverheadBits   uint64 `json:"overhead_bits"`
	WireBytes      uint64 `json:"wire_bytes"`

	// lattice points beyond 0.9 of the radius from their reference: the next may be wrong
	FarDecodes    uint64 `json:"far_decodes"`
	LargestDecode Num    `json:"largest_decode"` // largest distance of a lattice point from its reference

	Skipped   uint64 `json:"skipped_grads"` // gradients of fp16 that were not finite and became 0, so far
	LossScale Num    `json:"loss_scale"`    // of fp16, the smallest of the agents; 0: none

	GradsTotal int `json:"grads_total"`
	LR         Num `json:"lr"`
	Eta        Num `json:"eta"`
	// when the last agent was here, in seconds of the simulated network; without one 0, or of
	// fspda-async in mean gradients
	Time     Num `json:"virtual_time"`
	TimeMean Num `json:"virtual_time_mean"` // mean over the agents
	WallS    Num `json:"wall_s"`            // the only column that differs between two runs of one configuration
}

// Columns names the columns of metrics.csv, which are the keys of metrics.jsonl.
func Columns() []string {
	t := reflect.TypeFor[Row]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// Values returns the row as numbers in the order of Columns.
func (r Row) Values() []float64 {
	v := reflect.ValueOf(r)
	out := make([]float64, v.NumField())
	for i := range out {
		switch f := v.Field(i); f.Kind() {
		case reflect.Float64:
			out[i] = f.Float()
		case reflect.Int:
			out[i] = float64(f.Int())
		default:
			out[i] = float64(f.Uint())
		}
	}
	return out
}

// csv is the row as a line of metrics.csv. Integers stay integers.
func (r Row) csv() string {
	v := reflect.ValueOf(r)
	cells := make([]string, v.NumField())
	for i := range cells {
		switch f := v.Field(i); f.Kind() {
		case reflect.Float64:
			if x := f.Float(); !math.IsNaN(x) && !math.IsInf(x, 0) {
				cells[i] = strconv.FormatFloat(x, 'g', -1, 64)
			}
		case reflect.Int:
			cells[i] = strconv.FormatInt(f.Int(), 10)
		default:
			cells[i] = strconv.FormatUint(f.Uint(), 10)
		}
	}
	return strings.Join(cells, ",")
}
