package train

import (
	"fmt"

	"fspda/train/live"
	"fspda/train/safetensors"
)

// view reads where the edges of an agent stood.
func (c *checkpoint) view(a *agent) (live.Snapshot, error) {
	s := a.run.setup
	damaged := func(what string) (live.Snapshot, error) {
		return live.Snapshot{}, &CheckpointError{Path: c.path, Got: "is damaged: " + what}
	}
	neighbours := s.Graph.Neighbours(a.id)
	if c.Live == nil || len(c.Live.Edges) != len(neighbours) {
		return damaged("it lacks the edges of an agent in real time")
	}
	v := live.Snapshot{Clock: c.Live.Clock}
	for i, e := range c.Live.Edges {
		if e.Peer != neighbours[i] || e.N < 0 || e.Epoch < 0 {
			return damaged(fmt.Sprintf("edge %d leads to agent %d", i, e.Peer))
		}
		w := live.EdgeSnapshot{Peer: e.Peer, Fresh: e.Fresh}
		w.Dual.Epoch, w.Dual.N, w.Dual.S = e.Epoch, e.N, a.dev.NewVector(s.Dim)
		if e.N > 0 {
			host := make([]float32, s.Dim)
			if err := safetensors.LoadInto(c.file, vectorName(a.id, edgeName(e.Peer)), host); err != nil {
				return live.Snapshot{}, &CheckpointError{Path: c.path, Got: "cannot be read", Err: err}
			}
			a.dev.Write(w.Dual.S, host)
		}
		v.Edges = append(v.Edges, w)
	}
	return v, nil
}
