package runfolder

import (
	"encoding/json"
	"math"
	"path/filepath"

	"fspda/internal/bounded"
	"fspda/train/memory"
	"fspda/train/metric"
)

// Status is the way in which a run ended.
type Status string

const (
	Finished Status = "finished"
	Stopped  Status = "stopped" // the context ended; a checkpoint was written
	Diverged Status = "diverged"
)

// Summary is summary.json: a run in numbers. The sections only group the keys; their order is the
// order of the keys.
type Summary struct {
	Outcome
	metric.TestScores // this and the next seven: of the last row
	metric.TrainScores
	metric.DualScores
	metric.Traffic
	metric.DecodeScores
	metric.LossScaling
	AgentsPresent metric.Num `json:"agents_present"`
	metric.LanguageScores
	VirtualTimes
	Settings
	Memory []memory.Forecast `json:"memory,omitempty"` // memory of devices with a memory of their own
}

// Outcome describes the end of the run.
type Outcome struct {
	Algo           string  `json:"algo"`
	Agents         int     `json:"agents"`
	Iterations     int     `json:"iterations"` // reached
	Status         Status  `json:"status"`
	Failure        string  `json:"failed_to_converge,omitempty"` // the reason; empty of a run that converged
	WallS          float64 `json:"wall_s"`
	IterationsPerS float64 `json:"iterations_per_s"` // mean over wall_s, evaluation included
}

// VirtualTimes are the virtual times of the run.
type VirtualTimes struct {
	VirtualTime metric.Num `json:"virtual_time"` // seconds under simulated links, or of an asynchronous run
	// virtual time of the first evaluation with half of the best accuracy of the mean model
	TimeTo50 metric.Num `json:"time_to_50"`
	TimeTo80 metric.Num `json:"time_to_80"`
	TimeTo90 metric.Num `json:"time_to_90"`
	TimeTo95 metric.Num `json:"time_to_95"`
	Links    string     `json:"links"` // the simulated network, in a few words
}

// Settings describe the run, the program and the device.
type Settings struct {
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
	BN        string  `json:"bn"`
	Density   float64 `json:"density"`
	Partition string  `json:"partition"`
	Skew      float64 `json:"skew"` // mean share of an agent's most frequent class
	Threads   int     `json:"threads"`
	Command   string  `json:"command"`
	Machine   string  `json:"machine"`
}

const (
	summaryFile = "summary.json"
	maxSummary  = 1 << 20 // bytes
)

func (f *Folder) WriteSummary(s Summary) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceText(f.Disk, filepath.Join(f.Path, summaryFile), append(text, '\n')); err != nil {
		return &FolderError{Path: f.Path, Got: summaryFile + " cannot be written", Err: err,
			Hint: "make that possible, then go on with --resume: the training is done and saved"}
	}
	return nil
}

// Results reads the summary and the rows of a run that has ended.
func (f *Folder) Results() (s Summary, rows []metric.Row, err error) {
	if s, err = f.Summary(); err == nil {
		rows, err = ReadMetrics(filepath.Join(f.Path, "metrics.jsonl"), math.MaxInt)
	}
	return s, rows, err
}

// Summary reads summary.json. The error wraps os.ErrNotExist if the run has not ended.
func (f *Folder) Summary() (s Summary, err error) {
	text, err := bounded.File(filepath.Join(f.Path, summaryFile), maxSummary)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
