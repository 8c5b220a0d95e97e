package memory

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"fspda/device"
	"fspda/internal/cgroup"
	"fspda/train/config"
)

// ownProgram is an estimate of the bytes of the program itself and its runtime, a third of them
// pages of the program file.
const ownProgram = 100 << 20

// Footprint forecasts the bytes of a process that trains on the given devices: the program, the
// pictures in memory, and everything that the run keeps on the host. [Process] is more exact for
// this process.
func Footprint(s *config.Setup, devices ...device.Device) uint64 {
	return ownProgram + host(s, devices) + uint64(len(s.Set.Train.Pixels)+len(s.Set.Test.Pixels)) + uint64(s.Set.Memory)
}

// host forecasts the bytes of a run on the host. Without devices, or with devices that use the
// memory of the host, that is everything.
func host(s *config.Setup, devices []device.Device) uint64 {
	owned := len(devices) > 0 && Owned(devices[0])
	others := evaluationMemory(s, owned) + writerMemory(s)
	if !owned {
		return AgentBytes(s) + others + messageMemory(s) + ProgramBytes(s)
	}
	need := batchMemory(s) + others
	for i, dev := range devices {
		if d := dev.Features().Memory; d != nil {
			batches := GradientsAtOnce(s, dev, agentsOf(i, len(devices), s.Graph.N)) + Evaluators(s, len(devices))
			need += d.Staging(batches, s.MicroBatch()*s.Set.Features(), s.Dim)
		}
	}
	return need
}

// AgentBytes forecasts the bytes of agents whose vectors are on the host: vectors, snapshots and
// batches.
func AgentBytes(s *config.Setup) uint64 { return vectorMemory(s) + batchMemory(s) }

// agentOverhead is an estimate of the memory of an agent besides vectors: a stack, queues, lists,
// and its share of the garbage that the collector has not yet freed. That of many agents is smaller,
// since few of them compute at a time.
const (
	agentOverhead = 128 << 10
	fewOverhead   = 32 << 10
)

// fewCompute reports whether only as many agents compute at a time as there are threads, while each
// of the others waits for a thread or for the other end of one exchange.
func fewCompute(s *config.Setup) bool {
	return Lends(s) && SharesGradients(s, nil) && s.Traits.Asynchronous == nil && linksAtOnce(s) == 1
}

// exchanging returns how many agents have a message on its way and a mask at a time. Where few
// compute, one of two agents that exchange waits, and the other one finds its message.
func exchanging(s *config.Setup) int {
	if fewCompute(s) {
		return min(s.Graph.N, s.Graph.N/2+s.Threads)
	}
	return s.Graph.N
}

// vectorMemory returns the bytes of the agents' vectors and snapshots.
func vectorMemory(s *config.Setup) uint64 {
	all := 4 * uint64(agentVectors(s).numbers()) * uint64(s.Graph.N)
	if Lends(s) && SharesGradients(s, nil) {
		all -= 4 * uint64(s.Dim) * uint64(s.Graph.N-min(s.Graph.N, s.Threads))
		all -= 4 * uint64(s.Dim) * uint64(len(s.Traits.Mailbox)*(s.Graph.N-openMailboxes(s)))
	}
	return all
}

// openMailboxes estimates the number of agents that share vectors and keep an exchange at a time.
// Between the ends of the run, evaluations and checkpoints find them at any moment: agents are
// called to an exchange contacts times in the time of a gradient, and keep it for at most about
// such a time. Otherwise they keep it only while they compute, or wait for the next list of
// operations.
func openMailboxes(s *config.Setup) int {
	n := s.Graph.N
	if s.Config.EvalPoints <= 1 && s.Config.Checkpoint == 0 {
		return n / 16
	}
	return int(math.Ceil(float64(n) * s.Config.Contacts / (1 + s.Config.Contacts)))
}

// batchMemory returns the bytes that agents take on the host whatever their device is: batches
// prepared ahead, the workspace of compressors, the coordinates of a mask, and agentOverhead.
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
	overhead := agentOverhead
	if fewCompute(s) {
		overhead = fewOverhead
	}
	return uint64(4*(compressorNumbers(s)+3*batch)+overhead)*uint64(s.Graph.N) + 4*uint64(mask*exchanging(s))
}

// compressorNumbers returns the number of values that an agent compresses with: host copies,
// decoded values, and the compressed vector.
func compressorNumbers(s *config.Setup) int {
	switch {
	case s.Lattice != nil:
		return 2*s.Dim + 4*s.Dim
	case s.Compressor != nil && s.Compressor.Picked() == nil:
		return 2 * s.Dim
	}
	return 0
}

// messageMemory returns the bytes of the messages in flight.
func messageMemory(s *config.Setup) uint64 {
	return 4 * uint64(messageVectors(s).numbers()) * uint64(exchanging(s))
}

// linksAtOnce returns the number of links over which an agent communicates in an iteration.
func linksAtOnce(s *config.Setup) int {
	if s.AllReduces() {
		return 1 // all links carry one vector
	}
	return s.LinksAtOnce()
}

// plots is an estimate of the bytes that drawing the plots of the report takes.
const plots = 8 << 20

// evaluationMemory returns the bytes of an evaluation on the host: the mean model in both
// precisions, the sums over the duals, and the vectors of its workers, one for each thread. After
// the last one the result has a copy of every model, unless agents lend theirs, and plots are
// drawn.
func evaluationMemory(s *config.Setup, owned bool) uint64 {
	during, after := 8*s.Dim, plots+4*s.BufferLen()*s.Graph.N
	if !Lends(s) || owned {
		after += 4 * s.Dim * s.Graph.N
	}
	worker := 4 * (s.Dim + s.BufferLen())
	full := s.FullMetrics()
	if full {
		worker += 24 * s.Dim
	}
	if s.Traits.Tracked.Name != "" {
		during += 8 * s.Dim
		if full { // gradients of the agents' data
			during += 4*s.Dim*s.Graph.N + 8*s.Dim
		}
	}
	during += worker * min(s.Threads, s.EvaluatedAgents()+1)
	return uint64(4*s.Dim + max(during, after))
}

// writerMemory returns the bytes on their way to the disk: one vector of a checkpoint, whose others
// stay in the snapshots, and a best model.
func writerMemory(s *config.Setup) uint64 { return 4 * uint64(2*s.Dim+s.BufferLen()) }

// sharedProgram is the size in bytes from which on all programs of the host share the memory of the
// few that run at once.
const sharedProgram = 1 << 20

// ProgramBytes returns the bytes of the programs on the host. Small programs count for each
// gradient that is computed at once, and for each thread that scores. Large programs count as often
// as the threads can run them at once.
func ProgramBytes(s *config.Setup) (bytes uint64) {
	var shared uint64
	for _, p := range []struct {
		bytes uint64
		count int
	}{
		{s.Programs.Gradient, GradientsAtOnce(s, nil, s.Graph.N)},
		{s.Programs.Score, min(s.Threads, s.EvaluatedAgents()+1)},
	} {
		if p.bytes < sharedProgram {
			bytes += p.bytes * uint64(p.count)
		} else {
			shared = max(shared, p.bytes)
		}
	}
	bytes += s.Programs.Optimizer * uint64(min(s.Threads, s.Graph.N))
	threads := max(1, s.Threads/s.Graph.N) // threads of a program
	return bytes + shared*uint64(max(1, s.Threads/threads))
}

// Free returns the number of bytes that can be allocated without swapping, on systems that say so
// in /proc/meminfo, and within the limit of the control group of this process.
func Free() (uint64, bool) {
	free, ok := systemFree()
	if own, limited := cgroup.OwnMemory(); limited && (!ok || own.Free < free) {
		return own.Free, true
	}
	return free, ok
}

// FreeText says how many bytes are free, and of which limit if that is not the machine's.
func FreeText(free uint64) string {
	if own, limited := cgroup.OwnMemory(); limited && own.Free <= free {
		return fmt.Sprintf("%s of the limit of %s of this control group", Gigabytes(free), Gigabytes(own.Limit))
	}
	return Gigabytes(free)
}

func systemFree() (uint64, bool) {
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
