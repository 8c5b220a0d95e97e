package train

import (
	"fmt"

	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/memory"
)

// Replica is a device with the network on it.
type Replica struct {
	Device device.Device
	Model  Model
}

// worker is a device with the network on it, and what the agents on this device share.
type worker struct {
	Replica
	pool   *dist.Pool
	shared *sharedVectors
	gate   chan struct{} // its capacity is the number of gradients that are computed at once
	masks  *masks
	turns  *turns     // vectors for gradients, to be borrowed; nil: each agent has one of its own
	mail   *mailboxes // to be borrowed; nil likewise
}

// makeWorkers makes a worker for each device. Agent i gets worker i modulo their number.
func (r *run) makeWorkers(all []Replica) {
	for _, p := range all {
		if p.Model.Dim() != all[0].Model.Dim() {
			panic(fmt.Sprintf("train: networks of %d and %d parameters, want one network on all devices",
				all[0].Model.Dim(), p.Model.Dim()))
		}
		w := &worker{Replica: p, pool: dist.NewPool(p.Device)}
		w.shared = &sharedVectors{pool: w.pool, dim: r.setup.Dim, newest: map[int]*sharedVector{}}
		w.gate = make(chan struct{}, memory.GradientsAtOnce(r.setup, p.Device, r.setup.Graph.N))
		w.masks = newMasks(p.Device, r.setup.Mask, r.comingMasks(w))
		if r.lends() && memory.SharesGradients(r.setup, p.Device) {
			w.turns = &turns{}
			for range r.setup.Threads {
				w.turns.give(p.Device.NewVector(r.setup.Dim))
			}
			w.mail = &mailboxes{dev: p.Device, empty: p.Device.NewVector(r.setup.Dim), at: algo.Mailbox(r.setup.Algo)}
		}
		r.workers = append(r.workers, w)
	}
}

// workerOf is the worker of an agent.
func (r *run) workerOf(agent int) *worker { return r.workers[agent%len(r.workers)] }
