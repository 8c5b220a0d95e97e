package memory

import (
	"fspda/device"
	"fspda/train/config"
)

// logged is the number of vectors of the model up to which an agent keeps messages for others that it
// may have to send again, and leastLogged the bytes that it keeps at least.
const (
	logged      = 4
	leastLogged = 16 << 20
)

// OneAgent forecasts the most bytes of a process that has one agent of many, on a device. writer says
// that the process evaluates the run. Where the processes evaluate their own agents,
// it holds no vectors of others; else it has two snapshots of each, and one that has arrived.
func OneAgent(s *config.Setup, dev device.Device, writer bool) uint64 {
	d, n := uint64(s.Dim), uint64(s.Graph.N)
	vectors := stateVectors(s, 3) // two of them are snapshots
	need := ownProgram + uint64(len(s.Set.Train.Pixels)+len(s.Set.Test.Pixels)) + uint64(s.Set.Memory)
	need += batchMemory(s)/n + writerMemory(s)
	if log := max(leastLogged, 4*logged*d); n > 1 {
		need += 2 * log // A checkpoint copies it.
	}
	worker := 4 * (d + uint64(s.BufferLen()))
	if s.FullMetrics() {
		worker += 24 * d
	}
	evaluators := uint64(1)
	if writer {
		evaluators = 2 // its own model, and the mean
	}
	need += 8*d + 4*d + evaluators*worker // the mean model in both precisions
	if writer {
		need += plots
	}
	if !Owned(dev) {
		need += 4*uint64(vectors.numbers()+messageVectors(s).numbers()) + ProgramBytes(s)
	}
	if whole := s.RealTime() || s.Members.Elastic(); whole && writer {
		need += 4 * uint64(vectors.numbers()-s.Dim) * (n - 1) // A snapshot has no gradient.
	}
	return need
}
