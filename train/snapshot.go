package train

import (
	"fspda/device"
	"fspda/dist"
	"fspda/train/algo"
	"fspda/train/simnet"
)

// snapshot is all of an agent at the head of an iteration.
type snapshot struct {
	agent, t   int
	dev        device.Device // that the vectors are on
	eval, save bool
	x          device.Vector
	aux        []device.Vector // as named by Algorithm.Aux
	buffers    device.Vector   // of batch norm; nil: the network has none
	meter      meter
	ledger     dist.Ledger
	grads      int
	decodes    dist.DecodeStats
	scale      device.LossScale
	time       float64               // virtual
	clock      simnet.ClockState     // to be saved
	lines      []byte                // to be saved: of the network between processes
	live       *liveRecord           // to be saved: of a run in real time
	duals      map[int]device.Vector // to be saved: of its edges, by peer
	missing    bool                  // the agent is gone: this stands in for it
}

func newSnapshot(dev device.Device, s *algo.State, buffers int) *snapshot {
	sn := &snapshot{dev: dev, x: dev.NewVector(s.X.Len())}
	if buffers > 0 {
		sn.buffers = dev.NewVector(buffers)
	}
	for range s.Aux {
		sn.aux = append(sn.aux, dev.NewVector(s.X.Len()))
	}
	return sn
}
