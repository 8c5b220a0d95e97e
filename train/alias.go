package train

import (
	"fspda/train/config"
	"fspda/train/evaluate"
)

// Config and the other names are those of fspda/train/config that users of this package need most.
type (
	Config      = config.Config
	Setup       = config.Setup
	ConfigError = config.Error
	AutoFloat   = config.AutoFloat
	Widths      = config.Widths
	Field       = config.Field
	Method      = config.Method
	EdgeNeed    = config.EdgeNeed
	Schedule    = config.Schedule
)

// What a [Method] can need of the edge process.
const (
	AnyEdges   = config.AnyEdges
	WholeGraph = config.WholeGraph
	Rounds     = config.Rounds
	Coins      = config.Coins
	EveryPair  = config.EveryPair
	Pairs      = config.Pairs
	Speakers   = config.Speakers
	Clocks     = config.Clocks
)

// Default returns the configuration of the main experiment.
func Default() Config { return config.Default() }

// Keys lists the keys of a configuration file.
func Keys() []string { return config.Keys() }

// Nearest returns the name most similar to the wrong one, or "" if none is similar.
func Nearest(wrong string, names []string) string { return config.Nearest(wrong, names) }

// Algorithms lists the names that Config.Algo can have.
func Algorithms() []string { return config.Algorithms() }

// Register adds an algorithm to those that Config.Algo can name. See [config.Register].
func Register(m Method) { config.Register(m) }

// Row and the other names are those of fspda/train/evaluate that users of this package need most.
type (
	Row = evaluate.Row
	Num = evaluate.Num
)

// Columns lists the columns of metrics.csv, which are the keys of metrics.jsonl.
func Columns() []string { return evaluate.Columns() }
