package train

import (
	"fmt"

	"fspda/device"
	"fspda/train/live"
	"fspda/train/runfolder"
	"fspda/train/snapshot"
)

// loadEdges reads the state of an agent's edges from a checkpoint.
func (a *agent) loadEdges(ck *runfolder.Checkpoint) (v live.Snapshot, err error) {
	s := a.run.setup
	neighbours := s.Graph.Neighbours(a.id)
	if ck.Live == nil || len(ck.Live.Edges) != len(neighbours) {
		return v, ck.Damaged("it lacks the edges of an agent in real time")
	}
	v.Clock = ck.Live.Clock
	for i, e := range ck.Live.Edges {
		if e.Peer != neighbours[i] || e.N < 0 || e.Epoch < 0 {
			return v, ck.Damaged(fmt.Sprintf("edge %d leads to agent %d", i, e.Peer))
		}
		w := live.EdgeSnapshot{Peer: e.Peer, Fresh: e.Fresh}
		w.Dual.Epoch, w.Dual.N, w.Dual.S = e.Epoch, e.N, a.dev.NewVector(s.Dim)
		if e.N > 0 {
			if err := ck.LoadDual(a.id, e.Peer, a.dev, w.Dual.S); err != nil {
				return v, err
			}
		}
		v.Edges = append(v.Edges, w)
	}
	return v, nil
}

// saveEdges copies the clock and the edges of an agent for a checkpoint. Only edges with exchanges
// have a dual.
func saveEdges(v live.Snapshot, dev device.Device) (*snapshot.RealTime, map[int]device.Vector) {
	r, duals := &snapshot.RealTime{Clock: v.Clock}, map[int]device.Vector{}
	for _, e := range v.Edges {
		r.Edges = append(r.Edges, snapshot.Edge{Peer: e.Peer, Epoch: e.Dual.Epoch, N: e.Dual.N, Fresh: e.Fresh})
		if e.Dual.N > 0 {
			s := dev.NewVector(e.Dual.S.Len())
			dev.Do(device.Gather(s, e.Dual.S, nil))
			duals[e.Peer] = s
		}
	}
	return r, duals
}
