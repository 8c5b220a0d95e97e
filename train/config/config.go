package config

// Config holds every setting of a run, as a user gives it: some may be auto. Training reads a
// [Resolved], in which none is.
//
// A key is a [setting.Key] in the list of its section, from which flags, files, help, reference,
// checks and fingerprints follow, and a field whose tag names it. The keys are flat in files and
// flags: the sections only group them here.
type Config struct {
	DataKeys
	DecodingKeys
	NetworkKeys
	LengthKeys
	DualKeys[AutoFloat]
	AveragingKeys[AutoFloat, string]
	CompressionKeys[string]
	AsyncKeys[AutoFloat]
	StepKeys[string]
	ScheduleKeys
	ExchangeKeys[string]
	BatchKeys
	DeviceKeys
	ComputeKeys
	EvaluationKeys[string]
	OutputKeys
	ExecutionKeys

	values   map[string]any // The values of registered keys that are set: see RegisterKey.
	explicit []string       // The keys that the user set: see SetExplicit.

	wholeMetrics bool // See KeepWholeMetrics.
}
