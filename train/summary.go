package train

import (
	"math"
	"os"
	"runtime"
	"strings"

	"fspda/train/evaluate"
	"fspda/train/memory"
)

// Summary is summary.json: one run in numbers.
type Summary struct {
	Algo           string  `json:"algo"`
	Agents         int     `json:"agents"`
	Iterations     int     `json:"iterations"` // reached
	Status         Status  `json:"status"`
	WallS          float64 `json:"wall_s"`
	IterationsPerS float64 `json:"iterations_per_s"` // over wall_s, evaluation included
	TestAccAvg     Num     `json:"test_acc_avg"`
	TestTop5Avg    Num     `json:"test_top5_avg"`
	TestAccMin     Num     `json:"test_acc_min"`
	TestAccMean    Num     `json:"test_acc_mean"`
	TestAccMax     Num     `json:"test_acc_max"`
	TrainLossAvg   Num     `json:"train_loss_avg"`
	TrainLossWorst Num     `json:"train_loss_worst"`
	GradSqWorst    Num     `json:"grad_sq_worst"`
	Consensus      Num     `json:"consensus"`
	DualSum        Num     `json:"dual_sum"`
	BitsTotal      uint64  `json:"bits_total"`
	BitsSharedSeed uint64  `json:"bits_shared_seed"`
	BitsPacked     uint64  `json:"bits_packed"`
	BitsReference  uint64  `json:"bits_reference"`
	WireBytes      uint64  `json:"wire_bytes"`
	FarDecodes     uint64  `json:"far_decodes"`    // of a lattice
	LargestDecode  Num     `json:"largest_decode"` // of a lattice
	Skipped        uint64  `json:"skipped_grads"`  // of fp16
	LossScale      Num     `json:"loss_scale"`     // of fp16
	VirtualTime    Num     `json:"virtual_time"`   // under simulated links, in seconds, or of an asynchronous run
	// virtual time of the first evaluation with half of the best accuracy of the mean model
	TimeTo50   Num    `json:"time_to_50"`
	TimeTo80   Num    `json:"time_to_80"`
	TimeTo90   Num    `json:"time_to_90"`
	TimeTo95   Num    `json:"time_to_95"`
	Links      string `json:"links"` // the simulated network, in a few words
	Accounting string `json:"accounting"`
	Device     string `json:"device"`
	Seed       uint64 `json:"seed"`
	Version    string `json:"version"`
	Dim        int    `json:"dim"`
	Data       string `json:"data"`
	Model      string `json:"model"`
	Graph      string `json:"graph"`
	Edges      string `json:"edges"`
	Mask       string `json:"mask"`
	Metrics    string `json:"metrics"` // full or test
	// how the mean model of the last row came to its batch norm; empty: the network has none
	BN        string            `json:"bn"`
	Density   float64           `json:"density"`
	Partition string            `json:"partition"`
	Skew      float64           `json:"skew"` // mean share of an agent's most frequent class
	Threads   int               `json:"threads"`
	Command   string            `json:"command"`
	Machine   string            `json:"machine"`
	Memory    []memory.Forecast `json:"memory,omitempty"` // of devices that have their own
}

// Summarize puts a result into numbers: those of its last evaluation.
func Summarize(s *Setup, r *Result, dev, version string) Summary {
	c := s.Config
	sum := Summary{Algo: c.Algo, Agents: c.Agents, Iterations: r.Iteration, Status: r.Status, WallS: r.WallS,
		Device: dev, Seed: c.Seed, Version: version,
		Dim: s.Dim, Data: c.Data, Model: c.Model, Graph: c.Graph, Edges: c.Edges, Mask: c.Mask, Density: c.Density, Partition: c.Partition,
		Accounting: c.Accounting, Metrics: c.Metrics, Skew: s.Skew(), Threads: s.Threads, Command: CommandLine(
			os.Args), Machine: Machine(), Memory: r.Memory}
	if r.WallS > 0 {
		sum.IterationsPerS = float64(r.Iteration) / r.WallS
	}
	if len(r.Rows) == 0 {
		return sum
	}
	l := r.Rows[len(r.Rows)-1]
	sum.BN, sum.TestTop5Avg = evaluate.BatchNormMode(s, l.Iteration), l.TestTop5Avg
	sum.TestAccAvg, sum.TestAccMin, sum.TestAccMean, sum.TestAccMax = l.TestAccAvg, l.TestAccMin, l.TestAccMean, l.TestAccMax
	sum.TrainLossAvg, sum.TrainLossWorst, sum.GradSqWorst = l.TrainLossAvg, l.TrainLossWorst, l.GradSqWorst
	sum.Consensus, sum.DualSum = l.Consensus, l.DualSum
	sum.FarDecodes, sum.LargestDecode, sum.VirtualTime = l.FarDecodes, l.LargestDecode, l.Time
	sum.Skipped, sum.LossScale = l.Skipped, l.LossScale
	sum.TimeTo50, sum.TimeTo80, sum.TimeTo90, sum.TimeTo95 = timeTo(r.Rows, 0.5), timeTo(r.Rows, 0.8), timeTo(r.Rows,
		0.9), timeTo(r.Rows, 0.95)
	if s.Links != nil {
		sum.Links = s.Links.String()
	}
	sum.BitsTotal, sum.BitsSharedSeed, sum.BitsPacked, sum.BitsReference, sum.WireBytes = l.BitsTotal, l.BitsSharedSeed, l.BitsPacked, l.BitsReference, l.WireBytes
	return sum
}

// timeTo is the virtual time of the first row with a share of the best accuracy of the mean model
// in the run.
func timeTo(rows []Row, share float64) Num {
	best := Num(0)
	for _, r := range rows {
		if r.TestAccAvg > best { // a NaN is never
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

// Machine describes the computer in a few words.
func Machine() string {
	name := ""
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(text), "\n") {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value) + ", "
				break
			}
		}
	}
	return name + runtime.GOOS + "/" + runtime.GOARCH
}
