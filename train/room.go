package train

import (
	"fmt"
	"strings"

	"fspda/device"
	"fspda/train/algo"
	"fspda/train/config"
)

// separate is a device with a memory of its own: its vectors and programs take nothing of the
// host's.
type separate interface {
	device.Device
	// Memory tells how many bytes of its memory are free and how many there are.
	Memory() (free, total uint64, err error)
	// Opened tells how many bytes were taken when the device was opened, beside what the driver
	// takes for every program.
	Opened() uint64
	// Taken tells how many bytes less are free, by the driver's own count, than when the device had
	// just been opened.
	Taken() (bytes uint64, err error)
	// Block is the bytes that n numbers of float32 take, by themselves.
	Block(n int) uint64
	// Room forecasts the bytes that so many programs take that run one after the other: what they
	// compute in, of which the largest needs most bytes, and their batches of so many numbers each.
	Room(most uint64, programs, batch int) uint64
	// Beside estimates the bytes of what the device keeps for programs with so many sets of
	// vectors: recorded work, and kernels that libraries load when they are first wanted.
	Beside(sets int) uint64
	// Staging is the bytes of host memory through which so many batches of so many numbers come to
	// the device.
	Staging(batches, numbers int) uint64
}

// Room is what a run takes of a device with a memory of its own.
type Room struct {
	Name   string     `json:"name"`
	Agents int        `json:"agents"` // that live there
	Need   uint64     `json:"need_bytes"`
	Parts  []RoomPart `json:"parts"`
	Opened uint64     `json:"opened_bytes"` // by the device itself: kernels, libraries
	Free   uint64     `json:"free_bytes"`   // before anything of the run is there
	Total  uint64     `json:"total_bytes"`
	Taken  uint64     `json:"taken_bytes,omitempty"` // by the driver's count, in a run that is over
}

// RoomPart is one of the things that take memory.
type RoomPart struct {
	What  string `json:"what"`
	Bytes uint64 `json:"bytes"`
}

// needs adds a part, if it takes anything.
func (r *Room) needs(what string, bytes uint64) {
	if bytes > 0 {
		r.Need += bytes
		r.Parts = append(r.Parts, RoomPart{what, bytes})
	}
}

// ForecastRooms forecasts what a run takes of its devices, those that have no memory of their own left out.
// Evaluations are dealt over all of them.
func ForecastRooms(s *Setup, places ...Place) ([]Room, error) {
	var all []Room
	for i, p := range places {
		d, ok := p.Device.(separate)
		if !ok {
			continue
		}
		r := forecastRoom(s, d, agentsAt(i, len(places), s.Graph.N), evaluatorsOn(s, len(places)))
		var err error
		if r.Free, r.Total, err = d.Memory(); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// agentsAt is how many of all agents live at the i-th of so many places.
func agentsAt(i, places, agents int) int { return (agents + places - 1 - i) / places }

// forecastRoom is that of so many agents, and workers of evaluations, on a device.
func forecastRoom(s *Setup, d separate, agents, workers int) Room {
	r := Room{Name: d.Name(), Agents: agents, Opened: d.Opened()}
	programs := gradientsAtOnceOn(s, agents)
	r.needs("vectors of agents", uint64(agents)*vectors32(s).on(d))
	r.needs("messages and masks", uint64(agents)*messages32(s).on(d)+uint64(masksOn(s, d,
		agents))*d.Block(s.Mask.Len()))
	r.needs("vectors of evaluations", uint64(workers)*probe32(s).on(d))
	r.needs("activations and workspaces", d.Room(max(s.Programs.Gradient, s.Programs.Score), 0, 0))
	r.needs("batches", d.Room(0, programs, batchesAhead*s.MicroBatch()*s.Set.Features())+d.Room(0, workers,
		s.EvalChunk()*s.Set.Features())-2*d.Room(0, 0, 0))
	r.needs("data set", residentSet(s, d))
	r.needs("recorded work and libraries' kernels", d.Beside(agents*batchesAhead+workers))
	return r
}

// batchesAhead is for how many batches a program has room: one that is computed with, and one that
// comes.
const batchesAhead = 2

// lengths are vectors of float32 by their lengths: how many there are of each.
type lengths map[int]int

// on is the bytes that they take of a device.
func (l lengths) on(d separate) (bytes uint64) {
	for n, count := range l {
		if n > 0 {
			bytes += uint64(count) * d.Block(n)
		}
	}
	return bytes
}

// numbers is how many numbers they have together.
func (l lengths) numbers() (all int) {
	for n, count := range l {
		all += n * count
	}
	return all
}

// vectors32 are the vectors of an agent: what it remembers, its gradient, and two snapshots.
func vectors32(s *Setup) lengths {
	vectors := 1 + len(s.Algo.Aux()) // x and what is remembered
	n := 3*vectors + 1 + algo.ScratchVectors(s.Algo)
	if s.Config.Accum > 1 {
		n++
	}
	l := lengths{s.Dim: n}
	l[s.BufferLen()] += 3
	return l
}

// messages32 are the vectors that an agent has on their way to others.
func messages32(s *Setup) lengths {
	vectors := s.VectorsPerLink()
	if s.Mask.Dense() {
		return lengths{s.Dim: vectors}
	}
	return lengths{s.Mask.Len(): vectors * linksAtOnce(s)}
}

// masksOn is how many masks so many agents have on a device, whose coordinates take four bytes too.
// Those that it draws by itself it draws ahead.
func masksOn(s *Setup, d device.Device, agents int) int {
	if s.Mask.Dense() {
		return 0
	}
	n := agents * linksAtOnce(s)
	if newMasks(d, s.Mask, nil).drawer != nil {
		n += drawnAtOnce
	}
	return n
}

// probe32 are the vectors that a worker of an evaluation has on the device.
func probe32(s *Setup) lengths {
	l := lengths{s.Dim: 1}
	if s.Config.Metrics == config.MetricsFull {
		l[s.Dim]++
	}
	l[s.BufferLen()]++
	return l
}

// residentSet is the bytes of the data set where a device keeps it: for small networks, which
// agents compute together.
func residentSet(s *Setup, d separate) uint64 {
	if n := len(s.Set.Train.Pixels); s.Programs.Gradient < largeProgram && s.BufferLen() == 0 {
		return d.Block((n + 3) / 4)
	}
	return 0
}

// checkRooms refuses a setup that does not fit a device. It says what would.
func checkRooms(s *Setup, places []Place) error {
	rooms, err := ForecastRooms(s, places...)
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.Need > r.Free {
			return config.Invalid("device", r.Name, "%d agents with batches of %d need %s of its memory, of which %s of %s are free: %s",
				r.Agents, s.Config.Batch, gigabytes(r.Need), gigabytes(r.Free), gigabytes(r.Total), remedies(s, r))
		}
	}
	return nil
}

// remedies says what would fit.
func remedies(s *Setup, r Room) string {
	var all []string
	perAgent := max(1, (r.Parts[0].Bytes+r.Parts[1].Bytes)/uint64(r.Agents))
	rest := r.Need - perAgent*uint64(r.Agents)
	if rest < r.Free {
		if fits := (r.Free - rest) / perAgent; fits >= 1 {
			all = append(all, fmt.Sprintf("%d agents would fit", fits))
		}
	} else if room := float64(r.Free) - float64(perAgent*uint64(r.Agents)); room > 0 {
		if fits := int(room / float64(rest) * float64(s.MicroBatch())); fits >= 1 {
			all = append(all, fmt.Sprintf("gradients of %d examples at a time would fit (batch %d, or accumulate %d)",
				fits, fits, (s.Config.Batch+fits-1)/fits))
		}
	}
	if s.Config.Recompute == "none" && s.BufferLen() > 0 {
		all = append(all, "recompute blocks keeps fewer activations")
	}
	if s.Config.Precision == "fp32" || s.Config.Precision == "tf32" {
		all = append(all, "precision fp16 or bf16 halves them")
	}
	return strings.Join(append(all, "or spread the agents over more GPUs, as in cuda:0,1"), "; ")
}
