package train

import (
	"fspda/train/config"
	"fspda/train/control"
	"fspda/train/metric"
	"fspda/train/runfolder"
	"fspda/train/setting"
)

// Config is a configuration: the keys of a configuration file, which go doc
// fspda/train/config.Config lists by section.
type Config = config.Config

// Setup is a resolved configuration, made by Config.Resolve. Its fields are Config (without auto),
// Warnings, the data (Set and Shards, from data.Division), Weight, Graph, Process, Mask,
// Mixing, Compressor, Lattice, Algo, Traits, Files, Schedule, Threads, the simulated network (Links,
// ComputeTimes and others, from config.Simulated), and the size of the model (Dim, Buffers, Programs
// and others, from config.ModelSize). go doc fspda/train/config.Setup describes each.
type Setup = config.Setup

// Users of this package need these names of fspda/train/config most.
type (
	ConfigError  = config.Error
	AutoFloat    = config.AutoFloat
	Widths       = config.Widths
	Method       = config.Method
	Param        = config.Param
	Params       = config.Params
	Schedule     = config.Schedule
	CosineEpochs = config.CosineEpochs
)

// Control pauses and resumes a run, and requests checkpoints. Make one with NewControl.
type Control = control.Control

// NewControl makes a Control whose run is not paused.
func NewControl() *Control { return control.New() }

// Default returns the configuration of the default job.
func Default() Config { return config.Default() }

// Keys lists the keys of a configuration file.
func Keys() []string { return config.Keys() }

// Algorithms lists the names that Config.Algo can have.
func Algorithms() []string { return config.Algorithms() }

// Register adds an algorithm that Config.Algo can name. See [config.Register].
func Register(m Method) { config.Register(m) }

// RegisterKey adds a key to every configuration. See [config.RegisterKey].
func RegisterKey(k setting.Key) { config.RegisterKey(k) }

// Users of this package need these names of fspda/train/evaluate most.
type (
	Row = metric.Row
	Num = metric.Num
)

// Columns lists the columns of metrics.csv, which are the keys of metrics.jsonl.
func Columns() []string { return metric.Columns() }

// Users of this package need these names of fspda/train/runfolder most.
type (
	Status          = runfolder.Status
	Folder          = runfolder.Folder
	FolderError     = runfolder.FolderError
	CheckpointError = runfolder.CheckpointError
	Saved           = runfolder.Saved
	Summary         = runfolder.Summary
)

// The ways in which a run can end.
const (
	Finished = runfolder.Finished
	Stopped  = runfolder.Stopped
	Diverged = runfolder.Diverged
)

// Branch is a checkpoint from which another run goes on; see [runfolder.Branch].
type Branch = runfolder.Branch

// OpenBranch opens the checkpoint of a run at an iteration; see [runfolder.OpenBranch].
func OpenBranch(run string, s *Setup, at int) (*Branch, error) {
	return runfolder.OpenBranch(run, s, at)
}

// OpenFolder creates the run folder of a setup, or opens the folder of a run to be resumed. See
// [runfolder.OpenFolder].
func OpenFolder(path string, s *Setup, resume bool) (*Folder, error) {
	return runfolder.OpenFolder(path, s, resume)
}

// ReadConfig returns the configuration of a run folder.
func ReadConfig(path string) (Config, error) { return runfolder.ReadConfig(path) }

// ReadMetrics reads the rows of a metrics.jsonl before the given iteration.
func ReadMetrics(path string, before int) ([]Row, error) { return runfolder.ReadMetrics(path, before) }

// ReadBest reads and verifies the best mean model of a run folder.
func ReadBest(run string) (*runfolder.BestModel, error) { return runfolder.ReadBest(run) }

// OpenSaved opens and verifies the newest checkpoint of a run folder.
func OpenSaved(run string) (*Saved, error) { return runfolder.OpenSaved(run) }
