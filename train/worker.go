package train

import (
	"fmt"

	"fspda/device"
	"fspda/dist"
	"fspda/train/memory"
	"fspda/train/vectorpool"
)

// Replica is a device with the network on it.
type Replica struct {
	Device device.Device
	Model  Model
}

// worker is a device with the network on it, and the memory that the agents on this device share.
type worker struct {
	Replica
	pool    *dist.Pool      // pool of messages
	vectors vectorpool.Pool // pool of gradients and mailboxes
	cache   *vectorpool.Cache
	gate    chan struct{} // its capacity is the number of gradients that are computed at once
	masks   *masks
}

// makeWorkers makes a worker for each device. Agent i gets worker i modulo their number.
func (r *run) makeWorkers(all []Replica) {
	for _, p := range all {
		if p.Model.Dim() != all[0].Model.Dim() {
			panic(fmt.Sprintf("train: networks of %d and %d parameters, want one network on all devices",
				all[0].Model.Dim(), p.Model.Dim()))
		}
		w := &worker{Replica: p, pool: dist.NewPool(p.Device)}
		w.cache = vectorpool.NewCache(w.pool, r.setup.Dim)
		w.gate = make(chan struct{}, memory.GradientsAtOnce(r.setup, p.Device, r.setup.Graph.N))
		w.masks = newMasks(p.Device, r.setup.Mask, r.comingMasks(w))
		w.vectors = vectorpool.Private{Device: p.Device, Algo: r.setup.Algo}
		if r.lends() && memory.SharesGradients(r.setup, p.Device) {
			w.vectors = vectorpool.NewShared(p.Device, r.setup.Algo, r.setup.Dim, r.setup.Threads)
		}
		r.workers = append(r.workers, w)
	}
}

// workerOf is the worker of an agent.
func (r *run) workerOf(agent int) *worker { return r.workers[agent%len(r.workers)] }
