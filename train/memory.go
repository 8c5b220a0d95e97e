package train

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"fspda/dist"
	"fspda/train/config"
)

// RunMemory forecasts the bytes that a run takes: its agents, their messages, an evaluation, what is
// on its way to the disk, and the programs, where the model tells of them.
func RunMemory(s *Setup) uint64 {
	return agentsMemory(s) + 4*uint64(messagesLength(s))*uint64(s.Graph.N) + evaluationMemory(s) + writerMemory(s) +
		programsMemory(s)
}

// evaluationMemory is the bytes of an evaluation: on the host a copy of every model and dual and
// the mean model in both precisions, and what its workers hold, which are as many as there are
// threads.
func evaluationMemory(s *Setup) uint64 {
	host := 4*(2*s.Dim+s.BufferLen())*s.Graph.N + 12*s.Dim
	probe := 4 * (s.Dim + s.BufferLen())
	if s.Config.Metrics == config.MetricsFull {
		probe += 24 * s.Dim
	}
	return uint64(host + probe*min(s.Threads, s.EvaluatedAgents()+1))
}

// ownProgram is about the bytes of the program itself and what it runs on.
const ownProgram = 80 << 20

// Footprint forecasts the bytes of the whole process: Memory, the pictures that the data set holds,
// and the program itself.
func Footprint(s *Setup) uint64 {
	return ownProgram + RunMemory(s) + uint64(len(s.Set.Train.Pixels)+len(s.Set.Test.Pixels))
}

// largeProgram is from how many bytes on programs are worth to be waited for: no more gradients are
// then begun at once than there are threads.
const largeProgram = 64 << 20

// programsMemory is the bytes of all programs: of a gradient each agent may be inside one, unless
// they wait for each other; of scores as many as there are threads.
func programsMemory(s *Setup) uint64 {
	return s.Programs.Gradient*uint64(gradientsAtOnce(s, s.Graph.N)) + s.Programs.Score*uint64(min(s.Threads, s.EvaluatedAgents()+1))
}

// atOnceOnCard is how many large gradients are on their way to a device that works by itself: one
// is computed, one has its batch there, and the batch of one is on its way. More would only take
// memory.
const atOnceOnCard = 3

// gradientsAtOnceOn is gradientsAtOnce for the agents of such a device.
func gradientsAtOnceOn(s *Setup, agents int) int {
	if s.Programs.Gradient >= largeProgram {
		return min(agents, atOnceOnCard)
	}
	return agents
}

// evaluatorsOnCard is how many workers of an evaluation such a device has for a large network: it
// computes for one while the other looks for its batch.
const evaluatorsOnCard = 2

// evaluatorsOn is how many workers of an evaluation each of so many such devices has. Models of a
// small network are computed together.
func evaluatorsOn(s *Setup, places int) int {
	if s.Programs.Gradient >= largeProgram {
		return evaluatorsOnCard
	}
	return min(s.Threads, (s.EvaluatedAgents()+places)/places)
}

// gradientsAtOnce is how many gradients of so many agents are computed at once.
func gradientsAtOnce(s *Setup, agents int) int {
	if s.Programs.Gradient >= largeProgram {
		return min(agents, s.Threads)
	}
	return agents
}

// writerMemory is the bytes of what is on its way to the disk: a vector of a checkpoint, whose
// others stay in the snapshots, a best model that is written, and another that waits.
func writerMemory(s *Setup) uint64 { return 4 * uint64(3*s.Dim+2*s.BufferLen()) }

// messagesLength is the number of values that an agent has on their way at once: links without a
// mask share one copy.
func messagesLength(s *Setup) int {
	vectors := s.VectorsPerLink()
	if s.Mask.Dense() {
		return vectors * s.Dim
	}
	return vectors * linksAtOnce(s) * s.Mask.Len()
}

// linksAtOnce is over how many links an agent talks in an iteration.
func linksAtOnce(s *Setup) int {
	return max(1, int(math.Ceil(float64(s.Graph.MaxDegree())*s.MaxEdgeRate())))
}

// agentsMemory is the bytes of the agents: their vectors, the snapshots on their way to the
// collector, the batches prepared ahead.
func agentsMemory(s *Setup) uint64 {
	return 4*uint64(vectors32(s).numbers())*uint64(s.Graph.N) + batchMemory(s)
}

// batchMemory is the bytes of the agents on the host whatever their device: batches prepared ahead,
// and what compressors work in.
func batchMemory(s *Setup) uint64 {
	batch := s.Config.Batch
	if s.Config.Sampling == "full" {
		batch = len(s.Set.Train.Labels) / s.Graph.N
	}
	return 4 * uint64(packLength(s)+3*batch*s.Set.Features()) * uint64(s.Graph.N)
}

// hostMemory is what Memory leaves for the host where vectors and programs are on devices with a
// memory of their own.
func hostMemory(s *Setup, places []Place) uint64 {
	need := batchMemory(s) + evaluationMemory(s) + writerMemory(s)
	for i, p := range places {
		if d, ok := p.Device.(separate); ok {
			need += d.Staging(gradientsAtOnceOn(s, agentsAt(i, len(places), s.Graph.N))+evaluatorsOn(s, len(places)),
				s.MicroBatch()*s.Set.Features())
		}
	}
	return need
}

// CheckMemory refuses a setup whose forecast exceeds the memory that is free, of the host where the
// system tells it, and of the devices of a run.
func CheckMemory(s *Setup, places ...Place) error {
	if err := checkRooms(s, places); err != nil {
		return err
	}
	need := RunMemory(s)
	if len(places) > 0 {
		if _, ok := places[0].Device.(separate); ok {
			need = hostMemory(s, places)
		}
	}
	free, ok := freeMemory()
	if ok && need > free {
		return config.Invalid("agents", s.Config.Agents,
			"their vectors and batches need %s of memory, %s are free: use fewer agents, a smaller network or a smaller batch", gigabytes(need), gigabytes(free))
	}
	return nil
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.3g GB", float64(n)/1e9) }

// freeMemory reads how many bytes can be had without swapping. Only Linux says so in a file.
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

// packLength is the number of values that an agent compresses with: host copies, what was decoded,
// and the compressed vector.
func packLength(s *Setup) int {
	_, randk := s.Compressor.(dist.RandK)
	switch {
	case s.Lattice != nil:
		return 2*s.Dim + 4*s.Dim
	case s.Compressor != nil && !randk:
		return 2 * s.Dim
	}
	return 0
}
