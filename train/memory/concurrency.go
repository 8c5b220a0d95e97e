package memory

import (
	"fspda/device"
	"fspda/train/config"
)

// LargeProgram is the size in bytes from which on programs wait for each other: no more gradients
// are then computed at once than there are threads.
const LargeProgram = 64 << 20

// largeAtOnce is the number of large gradients in progress on a device with a memory of its own:
// one is computed, the batch of the second is there, and the batch of the third is on its way. More
// would only take memory.
const largeAtOnce = 3

// largeEvaluators is the number of evaluation workers of such a device for a large network: the
// device computes for one while the other prepares its batch.
const largeEvaluators = 2

// Most masks that a device draws ahead in one operation, with at most drawnTogether coordinates in
// total: long masks would take memory without being faster.
const (
	masksDrawnAtOnce = 16
	drawnTogether    = 1 << 20
)

// DrawnMasks returns how many masks of some coordinates a device draws ahead in one operation, and
// how many short ones are kept after their release, until the device has computed what reads them:
// a drawing that overwrote those would be in the middle of the operations that it computes at once.
func DrawnMasks(coordinates int) (most, kept int) {
	if most = min(masksDrawnAtOnce, drawnTogether/max(1, coordinates)); most == masksDrawnAtOnce {
		kept = 2 * most
	}
	return most, kept
}

// batchesAhead is the number of batches for which a program has memory: one that it computes with,
// and one that is on its way.
const batchesAhead = 2

// LendFrom is the number of agents from which on the agents of a process lend their vectors to
// evaluations and checkpoints, and wait for them, instead of copying them.
const LendFrom = 1000

// Lends reports whether the agents of a run lend their vectors, if they are all in one process.
func Lends(s *config.Setup) bool { return s.Graph.N >= LendFrom && !s.RealTime() }

// SharesGradients reports whether agents that lend their vectors have a vector for gradients in
// common with others on a device: one for each thread.
func SharesGradients(s *config.Setup, dev device.Device) bool {
	transient := s.Traits.Transient
	return transient && !Owned(dev) && s.Config.GradientTime == 0
}

// GradientsAtOnce returns the number of gradients that are begun at once on a device with the given
// number of agents. The programs of the host wait for memory themselves.
func GradientsAtOnce(s *config.Setup, dev device.Device, agents int) int {
	switch {
	case Owned(dev) && s.Programs.Gradient >= LargeProgram:
		return min(agents, largeAtOnce)
	case Lends(s) && SharesGradients(s, dev):
		return min(agents, s.Threads)
	}
	return agents
}

// Evaluators returns the number of models that are evaluated at once on each of the given number of
// devices with memories of their own. The models of a small network are computed together.
func Evaluators(s *config.Setup, devices int) int {
	if s.Programs.Gradient >= LargeProgram {
		return largeEvaluators
	}
	return min(s.Threads, (s.EvaluatedAgents()+devices)/devices)
}
