package train

import (
	"fmt"

	"fspda/device"
	"fspda/dist"
	"fspda/train/lend"
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
	shared *lend.Shared
	gate   chan struct{} // its capacity is the number of gradients that are computed at once
	masks  *masks
	turns  *lend.Turns     // vectors for gradients, to be borrowed; nil: each agent has one of its own
	mail   *lend.Mailboxes // to be borrowed; nil likewise
}

// makeWorkers makes a worker for each device. Agent i gets worker i modulo their number.
func (r *run) makeWorkers(all []Replica) {
	for _, p := range all {
		if p.Model.Dim() != all[0].Model.Dim() {
			panic(fmt.Sprintf("train: networks of %d and %d parameters, want one network on all devices",
				all[0].Model.Dim(), p.Model.Dim()))
		}
		w := &worker{Replica: p, pool: dist.NewPool(p.Device)}
		w.shared = lend.NewShared(w.pool, r.setup.Dim)
		w.gate = make(chan struct{}, memory.GradientsAtOnce(r.setup, p.Device, r.setup.Graph.N))
		w.masks = newMasks(p.Device, r.setup.Mask, r.comingMasks(w))
		if r.lends() && memory.SharesGradients(r.setup, p.Device) {
			w.turns = &lend.Turns{}
			for range r.setup.Threads {
				w.turns.Give(p.Device.NewVector(r.setup.Dim))
			}
			w.mail = lend.NewMailboxes(p.Device, r.setup.Algo, r.setup.Dim)
		}
		r.workers = append(r.workers, w)
	}
}

// workerOf is the worker of an agent.
func (r *run) workerOf(agent int) *worker { return r.workers[agent%len(r.workers)] }
