package memory

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"fspda/device"
	"fspda/train/algo"
	"fspda/train/config"
)

// Owned reports whether a device has a memory of its own.
func Owned(dev device.Device) bool {
	return dev != nil && dev.Features().Memory != nil
}

// Forecast is the memory that a run takes of a device with a memory of its own.
type Forecast struct {
	Name   string `json:"name"`
	Agents int    `json:"agents"` // number of agents of this device
	Need   uint64 `json:"need_bytes"`
	Parts  []Part `json:"parts"`                 // they sum to Need
	Opened uint64 `json:"opened_bytes"`          // memory that the device itself takes: kernels, libraries
	Free   uint64 `json:"free_bytes"`            // free memory before the run starts
	Total  uint64 `json:"total_bytes"`           // memory of the device
	Taken  uint64 `json:"taken_bytes,omitempty"` // memory taken after the run, by the driver's count
	// Unused says why memory that earlier runs measured was not used; nil: there is none, or it
	// was.
	Unused error `json:"-"`

	work string // name of the work, as [device.Memory] takes it
	sets int
}

// Part is one use of memory.
type Part struct {
	What  string `json:"what"`
	Bytes uint64 `json:"bytes"`
}

// add adds a part unless it is empty.
func (f *Forecast) add(what string, bytes uint64) {
	if bytes > 0 {
		f.Need += bytes
		f.Parts = append(f.Parts, Part{what, bytes})
	}
}

// Devices forecasts the memory that a run takes of its devices. It skips devices without a memory
// of their own. Agents and evaluations are spread over all devices.
func Devices(s *config.Setup, devices ...device.Device) ([]Forecast, error) {
	var all []Forecast
	for i, dev := range devices {
		if !Owned(dev) {
			continue
		}
		f := forecast(s, dev, agentsOf(i, len(devices), s.Graph.N), Evaluators(s, len(devices)))
		var err error
		if f.Free, f.Total, err = dev.Features().Memory.Memory(); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// agentsOf returns the number of agents on device i, of all agents and devices.
func agentsOf(i, devices, agents int) int { return (agents + devices - 1 - i) / devices }

// forecast forecasts the memory of a device with the given numbers of agents and evaluation
// workers.
func forecast(s *config.Setup, dev device.Device, agents, workers int) Forecast {
	d := dev.Features().Memory
	f := Forecast{Name: dev.Name(), Agents: agents, Opened: d.Opened()}
	programs := GradientsAtOnce(s, dev, agents)
	f.add("vectors of agents", uint64(agents)*agentVectors(s).on(d))
	f.add("messages and masks", uint64(agents)*messageVectors(s).on(d)+uint64(masksOn(s, dev,
		agents))*d.Block(s.Mask.Len()))
	f.add("vectors of evaluations", uint64(workers)*workerVectors(s).on(d))
	f.add("activations and workspaces", d.ProgramBytes(max(s.Programs.Gradient, s.Programs.Score), 0, 0))
	f.add("gradients at the same time", d.BranchBytes(programs))
	if s.Programs.Optimizer > 0 {
		f.add("matrix products of the optimizer", d.ProductBytes(s.Programs.Optimizer, s.ModelSize.Dim, agents))
	}
	f.add("batches", d.ProgramBytes(0, programs, batchesAhead*s.MicroBatch()*s.Set.Features())+
		d.ProgramBytes(0, workers, s.EvalChunk()*s.Set.Features())-2*d.ProgramBytes(0, 0, 0))
	f.add("data set", residentSet(s, d))
	f.work, f.sets = workOf(s), agents*batchesAhead+workers
	bytes, measured, err := d.Overhead(f.work, f.sets)
	what := "graphs, libraries' kernels (estimate)"
	if measured {
		what = "graphs, libraries' kernels (measured)"
	}
	f.add(what, bytes)
	f.Unused = err
	return f
}

// workOf names the network's programs by the properties that decide their kernels: the shapes of
// the examples and of the network's tensors, and the batches and sizes of the programs.
func workOf(s *config.Setup) string {
	shapes := sha256.Sum256(fmt.Appendf(nil, "%v %v %v", s.Set.Shape, s.Tensors, s.Buffers))
	return fmt.Sprintf("%s of %d parameters, shapes %x, batches of %d and %d, programs of %d and %d bytes",
		s.Config.Model, s.Dim, shapes[:8], s.MicroBatch(), s.EvalChunk(), s.Programs.Gradient,
		s.Programs.Score)
}

// measuredFrom is the number of iterations after which each agent has recorded all its graphs.
const measuredFrom = 32

// Compare returns the forecasts of devices with the memory taken of each, as the driver counts it.
// iterations is the length of the run that has ended, or 0 within a run. Memory that other
// processes took meanwhile is included. Devices that failed are left out. A run of enough
// iterations also stores its overhead beyond vectors and programs; the error says why that failed.
func Compare(forecasts []Forecast, iterations int, devices ...device.Device) (all []Forecast, err error) {
	for _, dev := range devices {
		if !Owned(dev) || len(forecasts) == 0 {
			continue
		}
		d, f := dev.Features().Memory, forecasts[0]
		forecasts = forecasts[1:]
		var failed error
		if f.Taken, failed = d.Taken(); failed != nil {
			continue
		}
		all = append(all, f)
		if iterations >= measuredFrom {
			err = errors.Join(err, d.KeepOverhead(f.work, f.sets))
		}
	}
	return all, err
}

// vectors counts vectors of float32 by their lengths.
type vectors map[int]int

// on returns the bytes that the vectors take of a device.
func (v vectors) on(d device.Memory) (bytes uint64) {
	for n, count := range v {
		if n > 0 {
			bytes += uint64(count) * d.Block(n)
		}
	}
	return bytes
}

// numbers returns the sum of the lengths of the vectors.
func (v vectors) numbers() (all int) {
	for n, count := range v {
		all += n * count
	}
	return all
}

// agentVectors counts the vectors of an agent: its state, its gradient, and two snapshots unless it
// lends its vectors.
func agentVectors(s *config.Setup) vectors {
	if Lends(s) {
		return stateVectors(s, 1)
	}
	return stateVectors(s, 3)
}

// stateVectors counts a number of copies of an agent's state, and its gradient.
func stateVectors(s *config.Setup, copies int) vectors {
	state := 1 + len(algo.Names(s.Algo))
	n := copies*state + 1 + s.Traits.AllScratchVectors()
	if s.Config.Accum > 1 {
		n++
	}
	if s.ClipsApart() {
		n++
	}
	v := vectors{s.Dim: n}
	for _, length := range s.Traits.EdgeLengths(s.Dim) {
		v[length] += copies * s.Graph.MaxDegree()
	}
	v[s.BufferLen()] += copies
	return v
}

// messageVectors counts the vectors that an agent has on their way to others.
func messageVectors(s *config.Setup) vectors {
	n := s.VectorsPerLink() * s.Traits.MessagesPerLink()
	if s.Mask.Dense() {
		if s.Traits.EdgeVectors != nil { // each neighbour is sent other vectors
			n *= linksAtOnce(s)
		}
		return vectors{s.Dim: n}
	}
	v := vectors{s.Mask.Len(): n * linksAtOnce(s)}
	if s.Traits.WholeEvery > 0 {
		v[s.Dim] += n
	}
	return v
}

// masksOn returns the number of masks that the given number of agents have on a device. A
// coordinate of a mask takes four bytes. A device that draws masks itself draws them ahead.
func masksOn(s *config.Setup, dev device.Device, agents int) int {
	if s.Mask.Dense() {
		return 0
	}
	n := agents * linksAtOnce(s)
	if _, ok := s.Mask.Sampling(); ok && dev.Features().Sampler != nil {
		_, kept := DrawnMasks(s.Mask.Len())
		n += masksDrawnAtOnce + kept
	}
	return n
}

// workerVectors counts the vectors of an evaluation worker.
func workerVectors(s *config.Setup) vectors {
	v := vectors{s.Dim: 1}
	if s.FullMetrics() {
		v[s.Dim]++
	}
	v[s.BufferLen()]++
	return v
}

// residentSet returns the bytes of the data set if the device keeps it: for small networks, whose
// agents are computed together.
func residentSet(s *config.Setup, d device.Memory) uint64 {
	if n := len(s.Set.Train.Pixels); s.Programs.Gradient < LargeProgram && s.BufferLen() == 0 {
		return d.Block((n + 3) / 4)
	}
	return 0
}
