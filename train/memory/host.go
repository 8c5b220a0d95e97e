package memory

import (
	"math"
	"os"
	"strconv"
	"strings"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/config"
)

// ownProgram is about the bytes of the program itself and its runtime, a third of them pages of the
// program file.
const ownProgram = 100 << 20

// Footprint forecasts the bytes of a process that trains on the given devices: the program, the
// pictures in memory, and everything that the run keeps on the host.
func Footprint(s *config.Setup, devices ...device.Device) uint64 {
	return ownProgram + host(s, devices) + uint64(len(s.Set.Train.Pixels)+len(s.Set.Test.Pixels)) + uint64(s.Set.Memory)
}

// host forecasts the bytes of a run on the host. Without devices, or with devices that use the
// memory of the host, that is everything.
func host(s *config.Setup, devices []device.Device) uint64 {
	owned := len(devices) > 0 && Owned(devices[0])
	need := batchMemory(s) + evaluationMemory(s, owned) + writerMemory(s)
	if !owned {
		return need + vectorMemory(s) + messageMemory(s) + ProgramBytes(s)
	}
	for i, dev := range devices {
		if d, ok := dev.(Device); ok {
			batches := GradientsAtOnce(s, d, agentsOf(i, len(devices), s.Graph.N)) + Evaluators(s, len(devices))
			need += d.Staging(batches, s.MicroBatch()*s.Set.Features())
		}
	}
	return need
}

// slabShare says which part of its vectors the host's device takes in addition: it cuts them from
// larger pieces of memory, of which a rest is lost.
const slabShare = 32

// agentOverhead is about what an agent takes beside vectors: a stack, queues, lists, and its share
// of what the garbage collector has not yet freed.
const agentOverhead = 128 << 10

// vectorMemory returns the bytes of the agents' vectors and snapshots.
func vectorMemory(s *config.Setup) uint64 {
	all := 4 * uint64(agentVectors(s).numbers()) * uint64(s.Graph.N)
	if Lends(s) && SharesGradients(s, nil) {
		all -= 4 * uint64(s.Dim) * uint64(s.Graph.N-min(s.Graph.N, s.Threads))
		all -= 4 * uint64(s.Dim) * uint64(len(algo.Mailbox(s.Algo))*(s.Graph.N-openMailboxes(s)))
	}
	return all + all/slabShare
}

// openMailboxes is about how many agents that share vectors keep an exchange at a time. Between the
// ends of the run, evaluations and checkpoints find them at any moment: agents are called to an
// exchange contacts times in the time of a gradient, and keep it for at most about such a time.
// Otherwise they keep it only while they compute, or wait for the next list of operations.
func openMailboxes(s *config.Setup) int {
	n := s.Graph.N
	if s.Config.EvalPoints <= 1 && s.Config.Checkpoint == 0 {
		return n / 16
	}
	return int(math.Ceil(float64(n) * s.Config.Contacts / (1 + s.Config.Contacts)))
}

// batchMemory returns the bytes that agents take on the host whatever their device is: batches
// prepared ahead, the workspace of compressors, the coordinates of a mask, and what is no vector.
func batchMemory(s *config.Setup) uint64 {
	batch := s.Config.Batch
	if s.Config.Sampling == "full" {
		batch = s.Set.Train.Len() / s.Graph.N
	}
	if !s.Set.Train.Refers() { // else a batch is a list of examples
		batch *= s.Set.Features()
	}
	mask := 0
	if !s.Mask.Dense() {
		mask = s.Mask.Len()
	}
	return (4*uint64(compressorNumbers(s)+3*batch+mask) + agentOverhead) * uint64(s.Graph.N)
}

// compressorNumbers returns how many numbers an agent compresses with: host copies, decoded values,
// and the compressed vector.
func compressorNumbers(s *config.Setup) int {
	_, randk := s.Compressor.(dist.RandK)
	switch {
	case s.Lattice != nil:
		return 2*s.Dim + 4*s.Dim
	case s.Compressor != nil && !randk:
		return 2 * s.Dim
	}
	return 0
}

// messageMemory returns the bytes of the messages in flight.
func messageMemory(s *config.Setup) uint64 {
	return 4 * uint64(messageVectors(s).numbers()) * uint64(s.Graph.N)
}

// linksAtOnce returns over how many links an agent communicates in an iteration.
func linksAtOnce(s *config.Setup) int {
	if s.Collective {
		return 1 // all links carry one vector
	}
	return max(1, int(math.Ceil(float64(s.Graph.MaxDegree())*s.MaxEdgeRate())))
}

// evaluationMemory returns the bytes of an evaluation on the host: the mean model in both precisions,
// the sum of the duals, a copy of every final model unless agents lend theirs, and the vectors of
// its workers, one for each thread.
func evaluationMemory(s *config.Setup, owned bool) uint64 {
	copies := 4*(s.Dim+s.BufferLen())*s.Graph.N + 24*s.Dim
	if Lends(s) && !owned {
		copies = 4*s.BufferLen()*s.Graph.N + 24*s.Dim
	}
	worker := 4 * (s.Dim + s.BufferLen())
	if s.Config.Metrics == config.MetricsFull {
		worker += 24 * s.Dim
	}
	return uint64(copies + worker*min(s.Threads, s.EvaluatedAgents()+1))
}

// writerMemory returns the bytes of what is on its way to the disk: one vector of a checkpoint,
// whose others stay in the snapshots; a best model that is written; and one that waits.
func writerMemory(s *config.Setup) uint64 { return 4 * uint64(3*s.Dim+2*s.BufferLen()) }

// ProgramBytes returns the bytes of the programs on the host: one for each gradient that is
// computed at once, and one for each thread that scores.
func ProgramBytes(s *config.Setup) uint64 {
	gradients := GradientsAtOnce(s, nil, s.Graph.N)
	return s.Programs.Gradient*uint64(gradients) + s.Programs.Score*uint64(min(s.Threads, s.EvaluatedAgents()+1))
}

// freeMemory returns how many bytes can be allocated without swapping, on systems that say so in
// /proc/meminfo.
func freeMemory() (uint64, bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			kb, err := strconv.ParseUint(f[1], 10, 64)
			return kb * 1024, err == nil
		}
	}
	return 0, false
}

// AgentBytes forecasts the bytes of the agents on the host: vectors, snapshots and batches.
func AgentBytes(s *config.Setup) uint64 { return vectorMemory(s) + batchMemory(s) }
