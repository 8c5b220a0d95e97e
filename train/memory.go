package train

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"fspda/dist"
)

// Memory forecasts the bytes that a run takes: its agents, their messages, an evaluation, what is
// on its way to the disk, and the programs, where the model tells of them.
func (s *Setup) Memory() uint64 {
	return s.agentsMemory() + 4*uint64(s.messagesLength())*uint64(s.Graph.N) + s.evaluationMemory() + s.writerMemory() +
		s.programsMemory()
}

// evaluationMemory is the bytes of an evaluation: on the host a copy of every model and dual and
// the mean model in both precisions, and what its workers hold, which are as many as there are
// threads.
func (s *Setup) evaluationMemory() uint64 {
	host := 4*(2*s.Dim+s.BufferLen())*s.Graph.N + 12*s.Dim
	probe := 4 * (s.Dim + s.BufferLen())
	if s.Config.Metrics == metricsFull {
		probe += 24 * s.Dim
	}
	return uint64(host + probe*min(s.Threads, s.EvaluatedAgents()+1))
}

// ownProgram is about the bytes of the program itself and what it runs on.
const ownProgram = 80 << 20

// Footprint forecasts the bytes of the whole process: Memory, the pictures that the data set holds,
// and the program itself.
func (s *Setup) Footprint() uint64 {
	return ownProgram + s.Memory() + uint64(len(s.Set.Train.Pixels)+len(s.Set.Test.Pixels))
}

// largeProgram is from how many bytes on programs are worth to be waited for: no more gradients are
// then begun at once than there are threads.
const largeProgram = 64 << 20

// programsMemory is the bytes of all programs: of a gradient each agent may be inside one, unless
// they wait for each other; of scores as many as there are threads.
func (s *Setup) programsMemory() uint64 {
	return s.program*uint64(s.gradientsAtOnce(s.Graph.N)) + s.scorer*uint64(min(s.Threads, s.EvaluatedAgents()+1))
}

// atOnceOnCard is how many large gradients are on their way to a device that works by itself: one
// is computed, one has its batch there, and the batch of one is on its way. More would only take
// memory.
const atOnceOnCard = 3

// gradientsAtOnceOn is gradientsAtOnce for the agents of such a device.
func (s *Setup) gradientsAtOnceOn(agents int) int {
	if s.program >= largeProgram {
		return min(agents, atOnceOnCard)
	}
	return agents
}

// evaluatorsOnCard is how many workers of an evaluation such a device has for a large network: it
// computes for one while the other looks for its batch.
const evaluatorsOnCard = 2

// evaluatorsOn is how many workers of an evaluation each of so many such devices has. Models of a
// small network are computed together.
func (s *Setup) evaluatorsOn(places int) int {
	if s.program >= largeProgram {
		return evaluatorsOnCard
	}
	return min(s.Threads, (s.EvaluatedAgents()+places)/places)
}

// gradientsAtOnce is how many gradients of so many agents are computed at once.
func (s *Setup) gradientsAtOnce(agents int) int {
	if s.program >= largeProgram {
		return min(agents, s.Threads)
	}
	return agents
}

// writerMemory is the bytes of what is on its way to the disk: a vector of a checkpoint, whose
// others stay in the snapshots, a best model that is written, and another that waits.
func (s *Setup) writerMemory() uint64 { return 4 * uint64(3*s.Dim+2*s.BufferLen()) }

// messagesLength is the number of values that an agent has on their way at once: links without a
// mask share one copy.
func (s *Setup) messagesLength() int {
	vectors := s.VectorsPerLink()
	if s.Mask.Dense() {
		return vectors * s.Dim
	}
	return vectors * s.linksAtOnce() * s.Mask.Len()
}

// linksAtOnce is over how many links an agent talks in an iteration.
func (s *Setup) linksAtOnce() int {
	return max(1, int(math.Ceil(float64(s.Graph.MaxDegree())*s.MaxEdgeRate())))
}

// agentsMemory is the bytes of the agents: their vectors, the snapshots on their way to the
// collector, the batches prepared ahead.
func (s *Setup) agentsMemory() uint64 {
	return 4*uint64(s.vectors32().numbers())*uint64(s.Graph.N) + s.batchMemory()
}

// batchMemory is the bytes of the agents on the host whatever their device: batches prepared ahead,
// and what compressors work in.
func (s *Setup) batchMemory() uint64 {
	batch := s.Config.Batch
	if s.Config.Sampling == "full" {
		batch = len(s.Set.Train.Labels) / s.Graph.N
	}
	return 4 * uint64(s.packLength()+3*batch*s.Set.Features()) * uint64(s.Graph.N)
}

// hostMemory is what Memory leaves for the host where vectors and programs are on devices with a
// memory of their own.
func (s *Setup) hostMemory(places []Place) uint64 {
	need := s.batchMemory() + s.evaluationMemory() + s.writerMemory()
	for i, p := range places {
		if d, ok := p.Device.(separate); ok {
			need += d.Staging(s.gradientsAtOnceOn(agentsAt(i, len(places), s.Graph.N))+s.evaluatorsOn(len(places)),
				s.MicroBatch()*s.Set.Features())
		}
	}
	return need
}

// CheckMemory refuses a setup whose forecast exceeds the memory that is free, of the host where the
// system tells it, and of the devices of a run.
func (s *Setup) CheckMemory(places ...Place) error {
	if err := s.checkRooms(places); err != nil {
		return err
	}
	need := s.Memory()
	if len(places) > 0 {
		if _, ok := places[0].Device.(separate); ok {
			need = s.hostMemory(places)
		}
	}
	free, ok := freeMemory()
	if ok && need > free {
		return wrong("agents", s.Config.Agents,
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
func (s *Setup) packLength() int {
	_, randk := s.Compressor.(dist.RandK)
	switch {
	case s.Lattice != nil:
		return 2*s.Dim + 4*s.Dim
	case s.Compressor != nil && !randk:
		return 2 * s.Dim
	}
	return 0
}
