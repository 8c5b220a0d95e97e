package snapshot

import (
	"slices"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/simnet"
)

// Snapshot is a copy of an agent at the head of an iteration.
type Snapshot struct {
	Agent, T int
	Eval     bool // it is to be evaluated
	Save     bool // it is to be saved
	Missing  bool // a placeholder for the snapshot of an agent that is absent
	Awaited  bool // the agent is missing, and has the state with which it will be a member

	Device  device.Device      // device of the vectors
	X       device.Vector      // the model
	Aux     []device.Vector    // vectors named by [algo.Names]
	Buffers device.Vector      // buffers of batch norm; nil: the network has none
	Edges   []*algo.EdgeMemory // memory of the algorithm for the agent's edges
	Counters

	Clock simnet.ClockState // virtual time of the agent

	// set where each agent's process evaluates its own model
	Step int       // position of the agent, as its driver counts
	Part Part      // metrics of the model, which the process has computed
	Mean []float32 // the mean model that is evaluated, at the coordinator

	// set in snapshots that are to be saved
	Streams  []byte                // state of the streams between processes
	LastRow  []Counters            // counters of all agents in the last row before T; set by the coordinator
	RealTime *RealTime             // nil: the run is not in real time
	Duals    map[int]device.Vector // duals of the agent's edges by peer, in real time
}

// Counters are the numbers that an agent keeps about its run so far.
type Counters struct {
	Ledger  dist.Ledger      `json:"ledger"`
	Losses  Losses           `json:"losses"`
	Grads   int              `json:"grads"`
	Decodes dist.DecodeStats `json:"decodes"`
	Scale   device.LossScale `json:"scale,omitzero"`
	Time    float64          `json:"time"` // virtual time
	// gradients that clip_norm shortened, and calls of an optimizer that counts them
	Clipped    int       `json:"clipped,omitempty"`
	Directions int       `json:"directions,omitempty"`
	Scalars    []float64 `json:"scalars,omitempty"` // numbers that the algorithm keeps
}

// Losses is the sum of the losses of an agent's batches since the last row of metrics.
type Losses struct {
	Loss  float64 `json:"loss"`
	Grads int     `json:"grads"`
}

// Add adds the loss of a batch.
func (l *Losses) Add(loss float64) {
	l.Loss += loss
	l.Grads++
}

// RealTime is the state of an agent in real time that is not in vectors.
type RealTime struct {
	Clock algo.LogicalClock `json:"desk"`
	Edges []Edge            `json:"edges"`
}

// Edge is the state of an edge of an agent in real time. Its dual is a vector of its own, unless it
// is zero.
type Edge struct {
	Peer  int  `json:"peer"`
	Epoch int  `json:"epoch"`
	N     int  `json:"exchanges"`
	Fresh bool `json:"fresh,omitempty"`
}

// New allocates a snapshot of an agent with as many vectors as s has. buffers is the length of its
// buffers of batch norm. It takes ownership of edges, the memory of the agent's edges.
func New(dev device.Device, s *algo.State, buffers int, edges []*algo.EdgeMemory) *Snapshot {
	sn := &Snapshot{Device: dev, X: dev.NewVector(s.X.Len()), Edges: edges}
	if buffers > 0 {
		sn.Buffers = dev.NewVector(buffers)
	}
	for range s.Aux {
		sn.Aux = append(sn.Aux, dev.NewVector(s.X.Len()))
	}
	return sn
}

// Vectors lists X, Aux, and Buffers if there are any.
func (sn *Snapshot) Vectors() []device.Vector {
	vs := append([]device.Vector{sn.X}, sn.Aux...)
	if sn.Buffers != nil {
		vs = append(vs, sn.Buffers)
	}
	return vs
}

// DeviceErr returns the error of a device that failed: values that were read from it since are
// invalid, and must not replace an earlier checkpoint.
func (sn *Snapshot) DeviceErr() error { return sn.Device.Err() }

// ReplaceAbsent makes sn a placeholder for the snapshot of an absent agent at iteration t. Its
// counters come from the agent's latest snapshot; its vectors are set by FillMissing.
func (sn *Snapshot) ReplaceAbsent(agent, t int, latest Counters) {
	sn.Agent, sn.T, sn.Eval, sn.Save, sn.Missing, sn.Awaited = agent, t, true, false, true, false
	sn.Counters, sn.Losses = latest, Losses{}
}

// Present returns the snapshots of the agents that are not missing.
func Present(set []*Snapshot) []*Snapshot {
	return slices.DeleteFunc(slices.Clone(set), func(sn *Snapshot) bool { return sn.Missing })
}

// FillMissing prepares the snapshots of absent agents for a checkpoint: it sets their models to the
// mean of the others, and their duals to zero, as an agent that joins has them. The mean of a
// checkpoint's models is then the mean of the present agents, and of those that are awaited.
func FillMissing(set []*Snapshot) {
	present := Present(set)
	for _, sn := range set {
		if !sn.Missing || sn.Awaited {
			continue
		}
		for k, v := range sn.Vectors() {
			if k > 0 && k <= len(sn.Aux) {
				sn.Device.Do(device.Combine(v))
				continue
			}
			var terms []device.Term
			for _, o := range present {
				terms = append(terms, device.Term{A: 1 / float64(len(present)), V: o.Vectors()[k]})
			}
			sn.Device.Do(device.Combine(v, terms...))
		}
	}
}
