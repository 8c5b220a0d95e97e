package train

import (
	"fmt"
	"strings"

	"fspda/device"
	"fspda/train/algo"
)

// separate is a device with a memory of its own: its vectors and programs take nothing of the host's.
type separate interface {
	device.Device
	// Memory tells how many bytes of its memory are free and how many there are.
	Memory() (free, total uint64, err error)
	// Room forecasts the bytes that so many programs take that run one after the other: what they compute in, of which the largest needs most
	// bytes, and their batches of so many numbers each.
	Room(most uint64, programs, batch int) uint64
}

// Room is what a run takes of a device with a memory of its own.
type Room struct {
	Name   string `json:"name"`
	Agents int    `json:"agents"` // that live there
	Need   uint64 `json:"need_bytes"`
	Free   uint64 `json:"free_bytes"` // before anything of the run is there
	Total  uint64 `json:"total_bytes"`
}

// Rooms forecasts what a run takes of its devices, those that have no memory of their own left out. The first is that of the evaluations.
func (s *Setup) Rooms(places ...Place) ([]Room, error) {
	var all []Room
	for i, p := range places {
		d, ok := p.Device.(separate)
		if !ok {
			continue
		}
		r := Room{Name: d.Name(), Agents: (s.Graph.N + len(places) - 1 - i) / len(places)}
		r.Need = s.vectorMemory(r.Agents) + d.Room(max(s.program, s.scorer), s.gradientsAtOnce(r.Agents), 2*s.microBatch()*s.Set.Features())
		if i == 0 {
			workers := min(s.Threads, s.lookedAt()+1)
			r.Need += s.probeMemory(workers) + d.Room(0, workers, s.evalChunk()*s.Set.Features())
		}
		var err error
		if r.Free, r.Total, err = d.Memory(); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// vectorMemory is the bytes of so many agents' vectors: what each remembers, that of its snapshots, and what it has on its way to others.
func (s *Setup) vectorMemory(agents int) uint64 {
	return 4 * uint64(agents) * uint64(s.vectorLength()+s.messagesLength())
}

// vectorLength is the numbers of an agent's vectors.
func (s *Setup) vectorLength() int {
	vectors := 1 + len(s.Algo.Aux()) // x and what is remembered
	n := (3*vectors + 1) * s.Dim
	if w, ok := s.Algo.(algo.Scratcher); ok {
		n += w.Scratch() * s.Dim
	}
	n += 3 * s.bufferLength()
	if s.Config.Accum > 1 {
		n += s.Dim
	}
	return n
}

// probeMemory is the bytes of the vectors that workers of an evaluation have on the device.
func (s *Setup) probeMemory(workers int) uint64 {
	n := s.Dim + s.bufferLength()
	if s.Config.Metrics == metricsFull {
		n += s.Dim
	}
	return 4 * uint64(n) * uint64(workers)
}

// checkRooms refuses a setup that does not fit a device. It says what would.
func (s *Setup) checkRooms(places []Place) error {
	rooms, err := s.Rooms(places...)
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.Need > r.Free {
			return wrong("device", r.Name, "%d agents with batches of %d need %s of its memory, of which %s of %s are free: %s",
				r.Agents, s.Config.Batch, gigabytes(r.Need), gigabytes(r.Free), gigabytes(r.Total), s.remedies(r))
		}
	}
	return nil
}

// remedies says what would fit.
func (s *Setup) remedies(r Room) string {
	var all []string
	perAgent := s.vectorMemory(1)
	rest := r.Need - s.vectorMemory(r.Agents)
	if rest < r.Free {
		if fits := (r.Free - rest) / perAgent; fits >= 1 {
			all = append(all, fmt.Sprintf("%d agents would fit", fits))
		}
	} else if room := float64(r.Free) - float64(s.vectorMemory(r.Agents)); room > 0 {
		if fits := int(room / float64(rest) * float64(s.microBatch())); fits >= 1 {
			all = append(all, fmt.Sprintf("gradients of %d examples at a time would fit (batch %d, or accumulate %d)", fits, fits, (s.Config.Batch+fits-1)/fits))
		}
	}
	if s.Config.Recompute == "none" && s.bufferLength() > 0 {
		all = append(all, "recompute blocks keeps fewer activations")
	}
	if s.Config.Precision == "fp32" || s.Config.Precision == "tf32" {
		all = append(all, "precision fp16 or bf16 halves them")
	}
	return strings.Join(append(all, "or spread the agents over more GPUs, as in cuda:0,1"), "; ")
}
